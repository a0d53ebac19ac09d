# SPDX-License-Identifier: MIT
"""Which processes take part in a run, and with which ranks."""
import ctypes
import dataclasses
import typing

from . import _surface as c
from ._core import Handle, call, check, context, encoded, interruptible, lib, ns, wait
from .store import Store


@dataclasses.dataclass(frozen=True)
class Event:
    """What happened to a run: `kind` is the name of a muster_rendezvous_event_kind in lower case, "left", "dead"."""
    kind: str
    rank: int
    round: int
    count: int
    text: str


_EVENTS = {getattr(c, "MUSTER_RENDEZVOUS_" + name): name.lower() for name in (
    "JOINED", "LAST_CALL", "COMPLETE", "LEFT", "DEAD", "WAITING", "ABORTED", "EXPELLED", "CLOSED", "LOST")}


class Round(Handle):
    """The members of a run at one time: `number`, which is also a fencing token, `rank`, `world`."""
    _release = "muster_round_release"

    def __init__(self, handle, opener):
        super().__init__(handle)
        self._context = opener
        info = c.muster_round_info()
        check(lib.muster_round_get_info(handle, ctypes.byref(info)))
        self.number, self.rank, self.world = info.number, info.rank, info.world

    def store(self) -> Store:
        """A view of the store for this round alone: its requests end with Stale when the round is over."""
        made = ctypes.c_void_p()
        call("muster_round_store", self.handle, ctypes.byref(made))
        return Store(None, opener=self._context, _handle=made.value)

    def member(self, rank: int, timeout: typing.Optional[float] = 60) -> bytes:
        """The address that the member with this rank gave."""
        found = c.muster_round_member_info()
        with self.used() as handle:
            interruptible(lambda: call("muster_round_member", handle, rank, ns(timeout), ctypes.byref(found)))
        return ctypes.string_at(found.address, found.address_bytes) if found.address else b""

    def __repr__(self):
        return f"<muster.Round {self.number}: rank {self.rank} of {self.world}>"


class Rendezvous(Handle):
    """A member of the run `run_id`. `url`: a store, `tcp://host:29400?host=auto`, `etcd://...`, or `static:` with `rank`.
    `min`, `max`: how many members a round has; `last_call`: seconds in which more may join once there are `min`.
    `address`: what the others get from Round.member()."""
    _release = "muster_rendezvous_release"

    def __init__(self, run_id: str, url: str = "", *, store: Store = None, min: int = 1, max: int = 0, rank: int = None,
                 last_call: float = 0, address: typing.Union[str, bytes] = b"", keep_alive: float = 0,
                 keep_alive_attempts: int = 0, state_dir: str = "", timeout: typing.Optional[float] = 60, opener=None):
        opener = opener or context()
        config = c.muster_rendezvous_config()
        config.struct_size = ctypes.sizeof(config)
        kept = []

        def put(field, text):
            text = encoded(text)
            kept.append(text)
            if text:
                setattr(config, field, ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p))
                setattr(config, field + "_bytes", len(text))
        put("run_id", run_id)
        put("url", url)
        put("address", address)
        put("state_dir", state_dir)
        config.store = None if store is None else store.handle
        config.min, config.max = min, max or min
        config.last_call_ns, config.keep_alive_ns = ns(last_call), ns(keep_alive)
        config.keep_alive_attempts = keep_alive_attempts
        if rank is not None:
            config.flags, config.rank = c.MUSTER_RENDEZVOUS_HAS_RANK, rank
        self._context = opener

        def opened(entry, detail):
            check(entry.status, detail)
            return entry.object
        handle = wait(opener.completions.begin(
            lambda queue, tag, error: lib.muster_rendezvous_open_begin(opener.handle, ctypes.byref(config), ns(timeout),
                                                                       queue, tag, error), opened, kept, config, store))
        super().__init__(handle, store)

    def _begin(self, completions, operation, reason, timeout):
        text = encoded(reason)

        def ended(entry, detail):
            check(entry.status, detail)
            return Round(entry.object, self._context) if entry.object else None
        return completions.begin(
            lambda queue, tag, error: lib.muster_rendezvous_begin(
                self.handle, operation, ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p) if text else None, len(text),
                ns(timeout), queue, tag, error), ended, text, self)

    def _wait(self, operation, timeout, reason=b""):
        return wait(self._begin(self._context.completions, operation, reason, timeout))

    def join(self, timeout: typing.Optional[float] = None) -> Round:
        """Waits for a round with this member."""
        return self._wait(c.MUSTER_RENDEZVOUS_JOIN, timeout)

    async def ajoin(self, timeout: typing.Optional[float] = None) -> Round:
        """As join()."""
        return await self._begin(self._context.completions_of_loop(), c.MUSTER_RENDEZVOUS_JOIN, b"", timeout)

    def leave(self, timeout: typing.Optional[float] = 60) -> None:
        """Leaves the round; the others see it."""
        self._wait(c.MUSTER_RENDEZVOUS_LEAVE, timeout)

    def exit(self, timeout: typing.Optional[float] = 60) -> None:
        """Waits until all members of the round have called it."""
        self._wait(c.MUSTER_RENDEZVOUS_EXIT, timeout)

    def abort(self, reason: str, timeout: typing.Optional[float] = 60) -> None:
        """Ends the round for all of its members."""
        self._wait(c.MUSTER_RENDEZVOUS_ABORT, timeout, reason)

    def close_run(self, reason: str = "", timeout: typing.Optional[float] = 60) -> None:
        """Closes the run: there are no further rounds."""
        self._wait(c.MUSTER_RENDEZVOUS_CLOSE, timeout, reason)

    def next_event(self, timeout: typing.Optional[float] = None) -> typing.Optional[Event]:
        """The next event; None: there was none in time."""
        found = c.muster_rendezvous_event()
        with self.used() as handle:
            status = self.in_slices(timeout, lambda left: lib.muster_rendezvous_next_event(handle, left,
                                                                                           ctypes.byref(found)))
        if status in (c.MUSTER_AGAIN, c.MUSTER_TIMEOUT):
            return None
        check(status)
        text = bytes(found.text)[:found.text_bytes].decode(errors="replace")
        return Event(_EVENTS.get(found.kind, str(found.kind)), found.rank, found.round, found.count, text)

    @property
    def waiting(self) -> int:
        """How many wait that could be in the next round."""
        state = c.muster_rendezvous_state()
        check(lib.muster_rendezvous_get_state(self.handle, ctypes.byref(state)))
        return state.waiting

    @property
    def is_closed(self) -> bool:
        """Was the run closed?"""
        state = c.muster_rendezvous_state()
        check(lib.muster_rendezvous_get_state(self.handle, ctypes.byref(state)))
        return bool(state.flags & c.MUSTER_RENDEZVOUS_IS_CLOSED)

