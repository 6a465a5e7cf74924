"""Steps a second of DistributedDataParallel on a slow network: dense, fp16, PowerSGD and ScaleCom.

Starts one gloo rank in each of several network namespaces whose links are shaped, and trains an MLP of
25 million parameters whose computing takes little beside its communication. The methods take turns,
round after round, in the same processes. PowerSGD gets the rank at which it sends what ScaleCom sends.

    sudo .venv/bin/python bench/network/ddp_network.py --network 1gbit
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import shaped_ranks
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import scalecom

WIDTHS = (2048, 4096, 4096)


def model() -> nn.Module:
    torch.manual_seed(0)
    layers = [m for a, b in zip(WIDTHS, WIDTHS[1:], strict=False) for m in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers)


def scalecom_bytes(rate: int) -> float:
    """Of values and offsets, for one rank's all-reduce payload."""
    weights = sum(a * b for a, b in zip(WIDTHS, WIDTHS[1:], strict=False))
    return weights / rate * (4 + (rate - 1).bit_length() / 8)


def powersgd_rank(rate: int) -> int:
    a_rank = sum(4 * (a + b) for a, b in zip(WIDTHS, WIDTHS[1:], strict=False))
    return max(1, round(scalecom_bytes(rate) / a_rank))


def methods(rate: int) -> dict[str, Callable[[DistributedDataParallel], object]]:
    power = powersgd_rank(rate)

    def powersgd(ddp: DistributedDataParallel) -> None:
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=power, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)

    return {
        "dense": lambda ddp: None,
        "fp16": lambda ddp: ddp.register_comm_hook(None, default_hooks.fp16_compress_hook),
        f"powersgd, rank {power}": powersgd,
        "scalecom": lambda ddp: scalecom.register(ddp, f"scalecom,rate={rate},first=compressed"),
    }


class Training:
    """One module with one method, stepped a few times at a turn."""

    def __init__(self, name: str, register: Callable[[DistributedDataParallel], object]) -> None:
        # Over gloo, PowerSGD's callbacks get out of order between ranks where there are several buckets.
        buckets = {"bucket_cap_mb": 1000} if name.startswith("powersgd") else {}
        self._ddp = DistributedDataParallel(model(), **buckets)
        self._kept = register(self._ddp)
        self._inputs = torch.randn(2, WIDTHS[0])
        for _ in range(3):  # buckets are cut anew after the first, PowerSGD begins with the third
            self.step()

    def step(self) -> None:
        self._ddp.zero_grad()
        self._ddp(self._inputs).square().mean().backward()

    def seconds(self, steps: int) -> float:
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        dist.barrier()
        return (time.perf_counter() - begin) / steps


def work(args: argparse.Namespace) -> None:
    """A rank. The first prints the figures."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    trainings = {name: Training(name, register) for name, register in methods(args.rate).items()}
    alone = Training("dense", lambda ddp: None)
    times: dict[str, list[float]] = {name: [] for name in trainings}
    computing = []
    for _ in range(args.rounds):
        for name, training in trainings.items():
            times[name].append(training.seconds(2 if "scalecom" not in name else 6))
        with alone._ddp.no_sync():
            computing.append(alone.seconds(2))
    if dist.get_rank() == 0:
        figures = {name: statistics.median(values) for name, values in times.items()}
        print(json.dumps({"seconds_a_step": figures, "computing": statistics.median(computing)}))
    dist.destroy_process_group()


def measured(args: argparse.Namespace) -> shaped_ranks.Figures:
    return {"network": args.network, "ranks": args.ranks, "rate": args.rate,
            **shaped_ranks.measure(args.network, args.ranks)}


def show(args: argparse.Namespace, figures: shaped_ranks.Figures) -> None:
    steps = figures["seconds_a_step"]
    print(f"{args.ranks} ranks on links of {args.network}; computing alone takes {figures['computing']:.3f} s a step")
    print(f"{'':24}{'s a step':>10}{'steps a second':>16}{'to dense':>10}")
    for name, seconds in steps.items():
        print(f"{name:24}{seconds:10.3f}{1 / seconds:16.2f}{steps['dense'] / seconds:9.1f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--network", default="1gbit", help="rate of every link, as tc writes it")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="turns that each method takes")
    shaped_ranks.main(parser, work, measured, show)


if __name__ == "__main__":
    main()
