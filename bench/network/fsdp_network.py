"""Step times of a model on nodes of several ranks with a slow network between them: HSDP, DDP, ScaleCom.

Two network namespaces stand for nodes: what crosses between them is shaped, what stays inside is not. Each
has two gloo ranks, and all train the same MLP of 25 million parameters, whose computing takes little beside
its communication: native HSDP (FSDP2 over a 2 x 2 mesh), DistributedDataParallel without and with ScaleCom,
and FSDP2 with ScaleCom between the nodes. They take turns, round after round, in the same processes.

The reduction of the two that shard is that between nodes: the time in it, in steps of their own, from when
both nodes have come to it. That of DDP is the difference, round by round, to steps that do not synchronise.

    sudo .venv/bin/python bench/network/fsdp_network.py --network 1gbit
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from unittest import mock

import shaped_ranks
import torch
import torch.distributed as dist
from ddp_network import WIDTHS, model
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

import scalecom

NODES, RANKS = 2, 2  # and ranks of a node
APART, ALONE = "FSDP2, nodes apart", "DDP, not synchronised"
HSDP, FSDP = "native HSDP", "FSDP2 with ScaleCom"
DDP, DDP_SCALECOM = "DDP", "DDP with ScaleCom"


class Stopwatch:
    """Time in reductions between nodes. Over gloo they are done when they return."""

    def __init__(self, between: dist.ProcessGroup) -> None:
        self._between = between
        self._running = False
        self._seconds = 0.0

    def around(self, reduce: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            if not self._running:
                return reduce(*arguments, **named)
            dist.barrier(self._between)
            begin = time.perf_counter()
            result = reduce(*arguments, **named)
            self._seconds += time.perf_counter() - begin
            return result

        return timed

    def read(self, steps: Callable[[], object]) -> float:
        """The time in reductions while `steps` runs."""
        self._running, self._seconds = True, 0.0
        steps()
        self._running = False
        return self._seconds


def sharded(mesh: DeviceMesh) -> nn.Module:
    network = model()
    for layer in network:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh, reshard_after_forward=False)
    return fully_shard(network, mesh=mesh)


def ways(rate: int, mesh: DeviceMesh, watch: Stopwatch) -> dict[str, Callable[[], tuple[nn.Module, object]]]:
    """Each way's module, and what has to live as long."""
    method = f"scalecom,rate={rate},first=compressed"

    def ddp_with_scalecom() -> tuple[nn.Module, object]:
        ddp = DistributedDataParallel(model())
        return ddp, scalecom.register(ddp, method)

    def fsdp_with_scalecom() -> tuple[nn.Module, object]:
        network = sharded(mesh["shard"])
        set_hook = FSDPModule.set_all_reduce_hook

        def set_timed_hook(module: FSDPModule, hook: Callable[..., Any], **named: Any) -> None:
            set_hook(module, watch.around(hook), **named)

        with mock.patch.object(FSDPModule, "set_all_reduce_hook", set_timed_hook):
            return network, scalecom.register_fsdp(network, method, between=mesh["node"].get_group())

    return {
        APART: lambda: (sharded(mesh["shard"]), None),
        HSDP: lambda: (sharded(mesh), None),
        ALONE: lambda: (DistributedDataParallel(model()), None),
        DDP: lambda: (DistributedDataParallel(model()), None),
        DDP_SCALECOM: ddp_with_scalecom,
        FSDP: fsdp_with_scalecom,
    }


class Training:
    """One way, stepped a few times at a turn."""

    def __init__(self, make: Callable[[], tuple[nn.Module, object]], synchronised: bool) -> None:
        self._module, self._kept = make()
        self._synchronised = synchronised
        self._inputs = torch.randn(2, WIDTHS[0])
        for _ in range(3):  # DDP cuts its buckets anew after the first
            self._step()

    def _step(self) -> None:
        self._module.zero_grad()
        with nullcontext() if self._synchronised else self._module.no_sync():
            self._module(self._inputs).square().mean().backward()

    def seconds(self, steps: int) -> float:
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            self._step()
        dist.barrier()
        return (time.perf_counter() - begin) / steps


def work(args: argparse.Namespace) -> None:
    """A rank. The first prints the figures."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (NODES, RANKS), mesh_dim_names=("node", "shard"))
    torch.manual_seed(dist.get_rank())
    watch = Stopwatch(mesh["node"].get_group())
    dist.all_reduce = watch.around(dist.all_reduce)  # what native HSDP calls
    trainings = {name: Training(make, name != ALONE) for name, make in ways(args.rate, mesh, watch).items()}
    times: dict[str, list[float]] = {name: [] for name in trainings}
    reductions: dict[str, list[float]] = {name: [] for name in (HSDP, FSDP, DDP, DDP_SCALECOM)}
    for _ in range(args.rounds):
        for name, training in trainings.items():
            times[name].append(training.seconds(args.steps))
            if name in (HSDP, FSDP):
                spent = watch.read(lambda: training.seconds(args.steps))  # noqa: B023: called at once
                reductions[name].append(spent / args.steps)
        for name in (DDP, DDP_SCALECOM):
            reductions[name].append(times[name][-1] - times[ALONE][-1])
    if dist.get_rank() == 0:
        print(json.dumps({
            "seconds_a_step": {name: statistics.median(values) for name, values in times.items()},
            "seconds_of_reduction": {name: statistics.median(values) for name, values in reductions.items()},
        }))
    dist.destroy_process_group()


def measured(args: argparse.Namespace) -> shaped_ranks.Figures:
    return {"network": args.network, "nodes": NODES, "ranks_a_node": RANKS, "rate": args.rate,
            **shaped_ranks.measure(args.network, NODES, RANKS)}


def show(args: argparse.Namespace, figures: shaped_ranks.Figures) -> None:
    steps, reductions = figures["seconds_a_step"], figures["seconds_of_reduction"]
    print(f"{NODES} nodes of {RANKS} ranks, {args.network} between nodes")
    print(f"{'':24}{'s a step':>10}{'to HSDP':>10}{'s of reduction':>16}{'to HSDP':>10}")
    for name, seconds in steps.items():
        line = f"{name:24}{seconds:10.3f}{steps[HSDP] / seconds:9.1f}x"
        if name in reductions:
            line += f"{reductions[name]:16.3f}{reductions[HSDP] / reductions[name]:9.1f}x"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--network", default="1gbit", help="rate between the nodes, as tc writes it")
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5, help="turns that each way takes")
    parser.add_argument("--steps", type=int, default=3, help="steps of a turn")
    shaped_ranks.main(parser, work, measured, show)


if __name__ == "__main__":
    main()
