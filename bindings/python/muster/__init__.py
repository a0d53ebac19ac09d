# SPDX-License-Identifier: MIT
"""Muster: streams over any transport, stores, rendezvous, groups and clusters, by one shared library.

    import muster
    listener = muster.listen("tcp://127.0.0.1:0")
    stream = muster.dial(listener.address)
    other = listener.accept()
    stream.write(b"hello")
    other.read(5)

Calls release the GIL while they wait, and handle Ctrl-C. Most have a form for coroutines with an `a` before its name, which
is served by the running event loop of asyncio over one descriptor."""
from . import _surface, trace
from ._core import (Canceled, Context, Error, Invalid, PeerGone, Refused, Stale, TimedOut, configure, context, version)
from .am import Endpoint
from .executor import BrokenWorker, Executor
from .group import Group
from .memory import GlobalMemory
from .messages import Dealer, Message, Router
from .metrics import Metrics, metrics
from .rendezvous import Rendezvous, Round
from .served import Launch, Manager, Transport
from .store import Changed, Entries, Entry, Store, StoreServer, op
from .streams import Listener, Stream, adial, dial, listen, pair

__all__ = ["BrokenWorker", "Canceled", "Changed", "Context", "Dealer", "Endpoint", "Entries", "Entry", "Error", "Executor", "GlobalMemory", "Group", "Invalid", "Launch", "Listener", "Manager", "Message", "Metrics", "PeerGone", "Refused",
           "Rendezvous", "Round", "Router", "Stale", "Store", "StoreServer", "Stream", "TimedOut", "Transport", "adial", "configure", "context",
           "dial", "listen", "metrics", "op", "pair", "trace", "version"]
