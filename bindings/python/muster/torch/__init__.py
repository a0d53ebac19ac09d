# SPDX-License-Identifier: MIT
"""Muster for PyTorch:

- `Store`: a torch.distributed.Store on any store of Muster.
- `torchrun --rdzv-backend=muster --rdzv-endpoint=host:29400 ...`: the rendezvous of Muster. Where torch does not find it
  by the entry point of this package (before 2.6), start `python -m muster.torch` in place of `torchrun`.
- `init_process_group("gloo", init_method="muster://host:29400/run?min=4")`: ranks by a rendezvous, and its store.
- `init_process_group("muster", ...)`: a process group whose collective operations are those of Muster's groups, over
  shared memory and any transport. Importing this module registers all of them."""
from .process_group import ProcessGroup, register as _register_backend
from .rendezvous import Handler, register as _register_rendezvous
from .store import Store, StoreTimeout

_register_rendezvous()
_register_backend()

__all__ = ["Handler", "ProcessGroup", "Store", "StoreTimeout"]
