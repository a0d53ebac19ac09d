# SPDX-License-Identifier: MIT
"""What this process counts, as text for Prometheus, and its publication in a store for `muster top`."""
import ctypes

from . import _surface as c
from ._core import Handle, call, check, context, encoded, lib
from .store import Store

_PREFIX = b"muster/metrics/"


def metrics(opener=None) -> str:
    """The metrics of a context and its objects; by default of the context of this process."""
    handle = (opener or context()).handle
    size, room = ctypes.c_size_t(), 4096
    while True:
        text = ctypes.create_string_buffer(room)
        status = lib.muster_metrics_write(handle, text, room, ctypes.byref(size))
        if status != c.MUSTER_E_LIMIT:
            check(status)
            return text.raw[:size.value].decode()
        room = size.value + 1024  # it may have grown


class Metrics(Handle):
    """Publishes the metrics of this process in a store, every `interval` seconds, until it is closed."""
    _release = "muster_metrics_release"

    def __init__(self, store: Store, name: str = "", interval: float = 2, opener=None):
        config, text = c.muster_metrics_config(), encoded(name)
        config.struct_size, config.interval_ns = ctypes.sizeof(config), int(interval * 1e9)
        if text:
            config.name, config.name_bytes = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), len(text)
        made = ctypes.c_void_p()
        call("muster_metrics_publish", (opener or context()).handle, store.handle, ctypes.byref(config), ctypes.byref(made))
        super().__init__(made.value, store)

    def state(self) -> dict:
        """How many texts the store has taken, and has not."""
        found = c.muster_metrics_state()
        check(lib.muster_metrics_get_state(self.handle, ctypes.byref(found)))
        return {"published": found.published, "failed": found.failed, "status": found.status}


def published(store: Store) -> str:
    """The metrics of all processes that publish them there, as one text: each sample has the label `process`."""
    heads, samples, after, more = {}, {}, None, True
    while more:
        entries = store.list(_PREFIX, after)
        more = bool(entries) and entries[-1].more
        for entry in entries:
            after = entry.key
            name = entry.key[len(_PREFIX):].decode("utf-8", "replace").replace("\\", "\\\\").replace('"', '\\"')
            family = ""
            for line in entry.value.decode("utf-8", "replace").splitlines():
                if line.startswith(("# HELP ", "# TYPE ")):
                    _, kind, family = line.split(" ", 3)[:3]
                    heads.setdefault(family, {}).setdefault(kind, line)
                    continue
                # Of a histogram the samples have other names than the family.
                sample, brace, rest = line.partition("{") if "{" in line else line.partition(" ")
                label = f'process="{name}"'
                samples.setdefault(family or sample, []).append(
                    f"{sample}{{{label},{rest}" if brace == "{" else f"{sample}{{{label}}} {rest}")
    return "".join("\n".join([*heads.get(family, {}).values(), *lines]) + "\n" for family, lines in samples.items())
