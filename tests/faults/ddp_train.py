"""Trains a small network by DistributedDataParallel and ScaleCom, as a user's script would: with
checkpoints, from the last of which it goes on, with any number of ranks. SIGTERM leaves one."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import checkpoint  # noqa: E402: its folder is no package

import scalecom  # noqa: E402: it needs torch first

FEATURES, CLASSES = 32, 10
BATCH = 128  # of all ranks together


def _samples(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Clusters that overlap a little."""
    centres = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(1))
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=draw)
    return 0.6 * centres[labels] + torch.randn(count, FEATURES, generator=draw), labels


def _batch(step: int, rank: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's part of what all ranks see in a step, whatever their number."""
    inputs, labels = _samples(1000 + step, BATCH)
    return inputs[rank::size], labels[rank::size]


def _accuracy(model: nn.Module) -> float:
    inputs, labels = _samples(7, 20000)
    with torch.no_grad():
        return 100 * (model(inputs).argmax(1) == labels).double().mean().item()


def _digest(model: nn.Module) -> str:
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(weights).hexdigest()


def _mean_memory(state: scalecom.State) -> dict[str, torch.Tensor]:
    """What is not sent yet, over all ranks, by name."""
    rank, means = dist.get_rank(), {}
    for key, memory in sorted(state.state_dict().items()):
        if key.startswith(f"rank{rank}."):
            mean = memory.double()
            dist.all_reduce(mean)
            means[key.removeprefix(f"rank{rank}.")] = mean / dist.get_world_size()
    return means


def _change(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> float:
    """The largest difference, as a part of the largest entry."""
    assert before.keys() == after.keys() and before
    return max(((after[n] - before[n]).abs().max() / before[n].abs().max()).item() for n in before)


def _agree(wish: bool) -> bool:
    """Whether any rank wishes it."""
    word = torch.tensor([float(wish)])
    dist.all_reduce(word, op=dist.ReduceOp.MAX)
    return word.item() > 0


class Run:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.out = args.out
        self.out.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, CLASSES)
        )
        # With unused parameters to be looked for, buckets stay as they were made.
        self.ddp = DistributedDataParallel(
            self.model, bucket_cap_mb=0.05, find_unused_parameters=args.keep_buckets
        )
        deadline = timedelta(seconds=args.deadline)
        self.state = scalecom.register(self.ddp, args.method, deadline=deadline)
        self.optimizer = torch.optim.SGD(self.ddp.parameters(), lr=0.1, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, args.steps)
        self.parts = {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}
        self.stop = False

    def interrupt(self, *_: object) -> None:
        self.stop = True

    def save(self, step: int) -> None:
        checkpoint.save(self.out, step, self.state, **self.parts)

    def step(self, step: int) -> None:
        inputs, labels = _batch(step, dist.get_rank(), dist.get_world_size())
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.ddp(inputs), labels).backward()
        self.optimizer.step()
        self.schedule.step()

    def train(self) -> None:
        first = checkpoint.load(self.out, self.state, torch.device("cpu"), **self.parts)
        size = dist.get_world_size()
        if dist.get_rank() == 0 and first:
            print(f"going on after step {first} with {size} ranks", flush=True)
        if self.args.note_memory:
            self.note_memory(first, size)
        for step in range(first, self.args.steps):
            self.step(step)
            done = step + 1
            if (done, size) == self.args.wait_at:
                self.wait_to_be_stopped()
            stop = _agree(self.stop)
            if stop or done % self.args.every == 0 or done == self.args.steps:
                if self.args.note_memory:
                    means = _mean_memory(self.state)
                    if dist.get_rank() == 0:
                        torch.save({"size": size, "means": means}, self.memory_file(done))
                self.save(done)
            if stop and done < self.args.steps:
                sys.exit(130)
        self.report()

    def wait_to_be_stopped(self) -> None:
        """By torchrun, when others join: however long those take to start, they come before the end."""
        while not self.stop:
            time.sleep(0.05)

    def memory_file(self, step: int) -> Path:
        return self.out / f"means-{step}.pt"

    def note_memory(self, first: int, size: int) -> None:
        """How far the mean memory moved when another number of ranks took it up."""
        means = _mean_memory(self.state)
        if dist.get_rank() != 0 or not first:
            return
        saved = torch.load(self.memory_file(first), weights_only=True)
        change = _change(saved["means"], means)
        line = {"step": first, "former": saved["size"], "ranks": size, "change": change}
        with (self.out / "memory.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")

    def report(self) -> None:
        if dist.get_rank() != 0:
            return
        result = {"weights": _digest(self.model), "value": _accuracy(self.model), "steps": self.args.steps}
        partial = self.out / "result.part"
        partial.write_text(json.dumps(result))
        partial.rename(self.out / "result.json")


def _note_errors() -> None:
    """Leaves the moment of an error for who watches; Python takes a while more until it is gone."""
    notes = os.environ.get("SCALECOM_FAULTS_NOTES")

    def hook(*error: Any) -> None:
        if notes is not None:
            Path(notes, f"{os.environ['RANK']}.raised").write_text(str(time.monotonic()))
        sys.__excepthook__(*error)

    sys.excepthook = hook


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--method", default="scalecom,rate=20,beta=0.1,warmup=10")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--deadline", type=float, default=4)
    parser.add_argument("--keep-buckets", action="store_true", help="DDP does not cut its buckets anew")
    parser.add_argument("--note-memory", action="store_true", help="how the mean memory came through")
    parser.add_argument("--wait-at", type=int, nargs=2, metavar=("STEP", "RANKS"),
                        help="after this step, so many ranks wait for others to join")
    args = parser.parse_args()
    args.wait_at = tuple(args.wait_at or ())
    return args


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    args = _arguments()
    _note_errors()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.deadline))
    run = Run(args)
    signal.signal(signal.SIGTERM, run.interrupt)
    run.train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
