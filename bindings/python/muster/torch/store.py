# SPDX-License-Identifier: MIT
"""A store of Muster as a torch.distributed.Store."""
import datetime

import torch.distributed as dist

from .. import store as stores
from .._core import Error, Stale, TimedOut

_Base = getattr(dist, "DistStoreError", RuntimeError)


class StoreTimeout(_Base, TimeoutError):
    """The time of a store's operation was over; a DistStoreError where torch has that."""


class StoreError(_Base):
    """An operation of a store failed."""


class Store(dist.Store):
    """All of torch's operations, also below PrefixStore. `store`: a muster.Store, or its URL; keys begin with `prefix`.
    A wait that takes longer than the timeout raises StoreTimeout."""

    def __init__(self, store, timeout=datetime.timedelta(seconds=300), prefix=""):
        super().__init__()
        self._timeout = timeout
        self._store = store if isinstance(store, stores.Store) else stores.Store(store, timeout.total_seconds())
        if prefix:
            self._store = self._store.view(prefix)

    @property
    def muster(self) -> stores.Store:
        """The store behind it."""
        return self._store

    def _do(self, name, *arguments, timeout=None, **options):
        seconds = (timeout or self._timeout).total_seconds()
        try:
            return getattr(self._store, name)(*arguments, timeout=seconds, **options)
        except TimedOut as problem:
            raise StoreTimeout(f"{name}: {problem}, after {seconds} s") from problem
        except stores.Changed:
            raise
        except Stale as problem:
            raise StoreError(f"{name}: the round of this store is over: {problem}") from problem
        except Error as problem:
            raise StoreError(f"{name}: {problem}") from problem

    # ---- what torch calls

    def set(self, key, value):
        self._do("set", key, value)

    def get(self, key):
        return self._do("get", key)

    def add(self, key, amount):
        return self._do("add", key, amount)

    def compare_set(self, key, expected, desired):
        """Torch's: the desired value if the key had the expected one, or was absent and that is empty; otherwise what the
        key has, or the expected value of an absent key."""
        expected, desired = stores.encoded(expected), stores.encoded(desired)
        while True:
            try:
                self._do("compare_set", key, expected, desired)
                return desired
            except stores.Changed as problem:
                if problem.entries and problem.entries[0].present:
                    return problem.entries[0].value
                if expected:
                    return expected
            try:
                self._do("compare_set", key, None, desired)
                return desired
            except stores.Changed as problem:
                if problem.entries and problem.entries[0].present:
                    return problem.entries[0].value  # another member was faster

    def delete_key(self, key):
        return self._do("delete", key)

    def check(self, keys):
        return self._do("check", *keys)

    def wait(self, keys, timeout=None):
        self._do("wait", *keys, timeout=timeout)

    def num_keys(self):
        return self._do("count")

    def set_timeout(self, timeout):
        self._timeout = timeout

    @property
    def timeout(self):
        return self._timeout

    # PrefixStore of torch 1 calls these by their names in C++.
    deleteKey, getNumKeys, compareSet = delete_key, num_keys, compare_set

    # ---- of later versions of torch

    def append(self, key, value):
        self._do("append", key, value)

    def multi_get(self, keys):
        found = self._do("transact", *(stores.op("get", key) for key in keys))
        return [entry.value for entry in found]

    def multi_set(self, keys, values):
        self._do("transact", *(stores.op("set", key, value) for key, value in zip(keys, values)))

    def has_extended_api(self):
        return True

    def queue_push(self, key, value):
        self._do("push", key, value)

    def queue_pop(self, key, block=True):
        if block:
            return self._do("pop", key)
        value = self._do("try_pop", key)
        if value is None:
            raise StoreError(f"the queue {key!r} is empty")
        return value

    def queue_len(self, key):
        return self._do("length", key)

    def clone(self):
        return Store(self._store, self._timeout)

    def __repr__(self):
        return f"<muster.torch.Store of {self._store!r}>"
