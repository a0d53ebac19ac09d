# SPDX-License-Identifier: MIT
"""A worker of the jobs of test_torch.py: trains a model with DistributedDataParallel, and prints a line that shows the result.
job.py <backend> <init_method>; the worker with rank `die` of the environment kills itself in its first life."""
import datetime
import os
import signal
import sys

from helpers import muster  # noqa: F401  pylint: disable=unused-import

import muster.torch  # noqa: E402,F401  pylint: disable=wrong-import-order
import torch
import torch.distributed as dist

dist.init_process_group(sys.argv[1], init_method=sys.argv[2], timeout=datetime.timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
if os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0" and rank == int(os.environ.get("die", -1)):
    os.kill(os.getpid(), signal.SIGKILL)
total = torch.tensor([float(rank + 1), 1.0])
dist.all_reduce(total)
parts = [torch.zeros(2, 2) for _ in range(size)]
dist.all_gather(parts, torch.full((2, 2), float(rank)))
word = torch.tensor([rank, rank + 1], dtype=torch.int32)
dist.broadcast(word, size - 1)
most = torch.tensor([[rank, 1], [2, -rank]]).t()  # not contiguous
dist.all_reduce(most, dist.ReduceOp.MAX)
dist.reduce(lowest := torch.tensor([rank + 5]), 0, dist.ReduceOp.MIN)
if sys.argv[1] == "muster":
    try:
        dist.new_group(list(range(size)))
        sys.exit("a second group was made")
    except ValueError as problem:
        assert "all ranks only" in str(problem)
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(20, 10), torch.nn.Linear(10, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 20)).pow(2).mean().backward()
    optimizer.step()
own = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
all_own = [torch.zeros_like(own) for _ in range(size)]
dist.all_gather(all_own, own)
same = all(torch.equal(all_own[0], other) for other in all_own)
dist.barrier()
line = ["result", rank, size, total.tolist(), [part[1, 1].item() for part in parts], word.tolist(), most.tolist(),
        lowest.item() if rank == 0 else None, same]
os.write(1, (" ".join(map(str, line)) + "\n").encode())  # in one piece: the workers of a host have one output
dist.destroy_process_group()
