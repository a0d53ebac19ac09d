# SPDX-License-Identifier: MIT
"""`python -m muster.torch ...` is `torchrun ...` with the rendezvous backend `muster`."""
from torch.distributed.elastic.multiprocessing.api import Std
from torch.distributed.run import main

from . import rendezvous


def _mend_torch():
    """Torch before 2.0 does not find the values 0 and 3 of --redirects and --tee with Python 3.11: every start fails."""
    if Std.from_str("0") is not None:
        return
    original = Std.from_str
    Std.from_str = classmethod(lambda cls, text: Std(int(text)) if text in ("0", "3") else original(text))


_mend_torch()
rendezvous.register()
main()
