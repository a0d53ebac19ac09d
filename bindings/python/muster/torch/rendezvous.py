# SPDX-License-Identifier: MIT
"""The rendezvous of Muster for torchrun, and as an init_method of process groups."""
import datetime
import inspect
import logging
import socket
import urllib.parse

import torch.distributed as dist
from torch.distributed.elastic import rendezvous as elastic

from .. import rendezvous as runs
from .. import store as stores
from .._core import Error, TimedOut
from .store import Store

BACKEND = "muster"
DEFAULT_PORT = 29400
log = logging.getLogger(__name__)
_members = []  # of process groups, until this process ends


def store_url(endpoint: str) -> str:
    """The store of a torchrun endpoint: a URL of Muster as it is; `host`, `host:port`: a store that the member on that
    host serves itself."""
    if "://" in endpoint:
        return endpoint
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdigit():
        host, port = endpoint, DEFAULT_PORT
    return f"tcp://{host or 'localhost'}:{port}?host=auto"


class Handler(elastic.RendezvousHandler):
    """For torchrun: the agents of a run are the members of a rendezvous. Options of --rdzv-conf: `last_call_timeout`,
    `join_timeout`, `keep_alive_interval` (seconds), `keep_alive_max_attempt`, `state_dir`."""

    def __init__(self, run_id, endpoint, min_nodes, max_nodes, **options):
        self._run_id = run_id
        self._join_timeout = float(options.get("join_timeout") or options.get("timeout") or 600)
        self._member = runs.Rendezvous(
            run_id, store_url(endpoint), min=min_nodes, max=max_nodes, timeout=self._join_timeout,
            last_call=float(options.get("last_call_timeout") or 30), keep_alive=float(options.get("keep_alive_interval") or 5),
            keep_alive_attempts=int(options.get("keep_alive_max_attempt") or 3), state_dir=options.get("state_dir") or "",
            address=socket.gethostname())
        self._round = None

    def get_backend(self):
        return BACKEND

    def next_rendezvous(self):
        try:
            self._round = self._member.join(self._join_timeout)
        except TimedOut as problem:
            raise elastic.RendezvousTimeoutError(str(problem)) from problem
        except Error as problem:
            if self.is_closed():
                raise elastic.RendezvousClosedError(str(problem)) from problem
            raise elastic.RendezvousConnectionError(str(problem)) from problem
        log.info("run %s, round %d: rank %d of %d", self._run_id, self._round.number, self._round.rank, self._round.world)
        store, rank, world = Store(self._round.store()), self._round.rank, self._round.world
        if hasattr(elastic, "RendezvousInfo"):  # torch 2.4 and later
            build = elastic.RendezvousStoreInfo.build  # which has a parameter more from 2.5 on
            more = {"local_addr": None} if "local_addr" in inspect.signature(build).parameters else {}
            return elastic.RendezvousInfo(store, rank, world, build(rank, store, **more))
        return store, rank, world

    def is_closed(self):
        try:
            return self._member.is_closed
        except Error:
            return True

    def set_closed(self):
        try:
            self._member.close_run("closed by an agent of torch", timeout=10)
        except Error as problem:
            log.warning("run %s was not closed: %s", self._run_id, problem)

    def num_nodes_waiting(self):
        return self._member.waiting

    def get_run_id(self):
        return self._run_id

    def shutdown(self):
        self.set_closed()
        closed = self.is_closed()
        self._member.close()
        return closed

    @property
    def use_agent_store(self):
        return False


def create_handler(parameters):
    """Of the registry of torch, and its entry point `torchrun.handlers`."""
    options = {name: parameters.get(name) for name in ("timeout", "join_timeout", "last_call_timeout", "keep_alive_interval",
                                                       "keep_alive_max_attempt", "state_dir")}
    return Handler(parameters.run_id, parameters.endpoint, parameters.min_nodes, parameters.max_nodes, **options)


def _by_url(url, timeout=datetime.timedelta(seconds=300), **_):
    """muster://host:port/run?min=2&max=4: a rendezvous assigns the ranks. With rank and world_size only its store is used.
    muster+etcd://...: the store of that URL."""
    parts = urllib.parse.urlparse(url)
    query = {name: values[-1] for name, values in urllib.parse.parse_qs(parts.query).items()}
    kind = parts.scheme.partition("+")[2]
    where = f"{kind}://{parts.netloc}" if kind else store_url(parts.netloc)
    run_id = parts.path.strip("/") or "torch"
    seconds = timeout.total_seconds()
    rank, size = int(query.get("rank", -1)), int(query.get("world_size", -1))
    if rank >= 0 and size > 0:
        member = runs.Rendezvous(run_id, where, min=size, max=size, rank=rank, timeout=seconds)
    else:
        least = int(query.get("min", query.get("world_size", 0)))
        if least < 1:
            raise ValueError(f"{url}: give rank and world_size, or the number of members: ?min=4")
        member = runs.Rendezvous(run_id, where, min=least, max=int(query.get("max", least)), timeout=seconds,
                                 last_call=float(query.get("last_call", 30)))
    round_ = member.join(seconds)
    if rank >= 0 and round_.rank != rank:
        raise ValueError(f"{url}: rank {rank} belongs to another member; this one has rank {round_.rank}")
    store = Store(round_.store(), timeout)
    # Torch keeps only the C++ part of a store; without the member the round would be over, and a store that it serves gone.
    _members.append((member, store))
    yield store, round_.rank, round_.world
    raise RuntimeError("the ranks of a run change by a new rendezvous, with a new process group")


def register():
    """Makes torch know the backend and the init_method."""
    try:
        elastic.rendezvous_handler_registry.register(BACKEND, create_handler)
    except ValueError:
        pass  # by the entry point
    for scheme in ("muster", "muster+etcd", "muster+tcp"):
        try:
            dist.register_rendezvous_handler(scheme, _by_url)
        except RuntimeError:
            pass  # it is registered
