"""Trains a small network with DistributedDataParallel and ScaleCom.

    torchrun --nproc-per-node 2 examples/ddp/train.py
"""

import argparse
import logging

import scalecom
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--method", default="scalecom,rate=100,beta=0.1,warmup=20")
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")

    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    rank = dist.get_rank()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if cuda else torch.device("cpu")

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    teacher = nn.Linear(64, 10)  # what the network is to learn
    ddp = DistributedDataParallel(model.to(device))
    state = scalecom.register(ddp, args.method)  # the line

    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    data = torch.Generator().manual_seed(1 + rank)
    for step in range(args.steps):
        inputs = torch.randn(32, 64, generator=data)
        labels = teacher(inputs).argmax(1)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if rank == 0 and (step + 1) % 50 == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    if rank == 0:
        stats = state.stats()
        print(f"sent {stats['bytes_sent'] / 1e6:.1f} MB, {stats['effective_rate']:.1f}x less than dense")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
