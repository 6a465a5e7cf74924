"""What communication hooks add to a training step of ResNet-50 under DistributedDataParallel, on one GPU.

A world of one sends nothing, but compresses all the same: what a hook costs is seen without a network.
No hook, PyTorch's own hooks and ours take turns of a few steps, in another order each round, in one
process; figures are medians over all turns, as the host's launches, which take longer than the GPU's work
at this batch, vary from turn to turn.

    .venv/bin/python bench/ddp.py
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import scalecom

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "imagenet"))
from model import resnet50

Register = Callable[[DistributedDataParallel], object]


def powersgd(rank: int) -> Register:
    def register(ddp: DistributedDataParallel) -> None:
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)

    return register


def hooks(rate: int) -> dict[str, Register]:
    return {
        "no hook": lambda ddp: None,
        "allreduce": lambda ddp: ddp.register_comm_hook(None, default_hooks.allreduce_hook),
        "fp16": lambda ddp: ddp.register_comm_hook(None, default_hooks.fp16_compress_hook),
        "powersgd, rank 1": powersgd(1),
        "powersgd, rank 4": powersgd(4),
        "scalecom": lambda ddp: scalecom.register(ddp, f"scalecom,rate={rate},beta=0.1"),
    }


class Training:
    """One model with one hook."""

    def __init__(self, register: Register, batch: int, device: torch.device) -> None:
        torch.manual_seed(0)
        model = resnet50(1000).to(device, memory_format=torch.channels_last)
        self._ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
        self._kept = register(self._ddp)
        self._optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
        self._inputs = torch.randn(batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
        self._labels = torch.randint(0, 1000, (batch,), device=device)

    def step(self) -> None:
        self._optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(self._ddp(self._inputs), self._labels)
        loss.backward()
        self._optimizer.step()

    def milliseconds(self, steps: int) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - begin) / steps


def measure(args: argparse.Namespace) -> dict[str, object]:
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    torch.backends.cudnn.benchmark = True
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29533")
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=device)
    trainings = {name: Training(hook, args.batch, device) for name, hook in hooks(args.rate).items()}
    for training in trainings.values():
        training.milliseconds(10)  # kernels are chosen, buckets cut anew, PowerSGD begins
    times: dict[str, list[float]] = {name: [] for name in trainings}
    order = random.Random(0)
    for _ in range(args.rounds):
        for name in order.sample(list(trainings), len(trainings)):
            times[name].append(trainings[name].milliseconds(args.steps))
    dist.destroy_process_group()
    median = {name: statistics.median(values) for name, values in times.items()}
    return {
        "gpu": torch.cuda.get_device_name(device), "torch": torch.__version__, "batch": args.batch,
        "rate": args.rate, "ms_a_step": median,
        "fastest_ms": {name: min(values) for name, values in times.items()},
        "ratio_to_no_hook": {name: value / median["no hook"] for name, value in median.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--steps", type=int, default=4, help="steps of a turn")
    parser.add_argument("--rounds", type=int, default=60, help="turns that each hook takes")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here; - for stdout alone")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use")
    result = measure(args)
    text = json.dumps(result, indent=2)
    if args.json == "-":
        print(text)
        return
    if args.json:
        Path(args.json).write_text(text + "\n", encoding="utf-8")
    print(f"ResNet-50, batch {args.batch}, bf16 autocast, {result['gpu']}, torch {result['torch']}")
    print(f"{'':20}{'ms a step':>10}{'over no hook':>14}{'fastest turn':>14}")
    for name, ratio in result["ratio_to_no_hook"].items():
        ms, fastest = result["ms_a_step"][name], result["fastest_ms"][name]
        print(f"{name:20}{ms:10.2f}{100 * (ratio - 1):+13.1f}%{fastest:14.2f}")


if __name__ == "__main__":
    main()
