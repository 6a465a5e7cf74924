"""Trains ResNet-50 on ImageNet with ScaleCom, with the paper's settings.

    torchrun --nproc-per-node 8 -m examples.imagenet.train --data DIR --out runs/imagenet
"""

from __future__ import annotations

import argparse
import logging
import time
from pathlib import Path

import scalecom
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from .. import checkpoint
from ..world import Place, join
from . import data
from .model import resnet50

STANDARD_BATCH = 256  # of all ranks together
DENSE_EPOCHS = 5  # of compression's warm-up: under a tenth of training


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="has train/CLASS/*.JPEG and val/CLASS/*.JPEG")
    parser.add_argument("--out", type=Path, required=True, help="for checkpoints; a run found there goes on")
    parser.add_argument("--method", help="by the size of the batch: see README.md")
    parser.add_argument("--rates", default="flops")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch", type=int, default=32, help="of a rank")
    parser.add_argument("--lr", type=float, help="0.1 for each 256 pictures of a step")
    parser.add_argument("--size", type=int, default=224, help="pictures are cut to this many pixels each way")
    parser.add_argument("--workers", type=int, default=8, help="processes that read pictures, a rank")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--amp", action="store_true", help="compute in bfloat16 where that is safe")
    return parser.parse_args()


def paper_method(batch: int, steps: int) -> str:
    """The paper's settings, for a batch of all ranks and an epoch of so many steps."""
    beta = 1 if batch <= STANDARD_BATCH else 0.1
    return f"scalecom,rate=96,beta={beta},warmup={DENSE_EPOCHS * steps}"


def learning_rate(peak: float, epoch: float, batch: int) -> float:
    """Divided by 10 after 30, 60 and 80 epochs; with large batches it grows over the first 5."""
    warm = min(1.0, 0.1 + 0.9 * epoch / 5) if batch > STANDARD_BATCH else 1.0
    return peak * warm * 0.1 ** sum(epoch >= drop for drop in (30, 60, 80))


class Trainer:
    def __init__(self, args: argparse.Namespace, place: Place) -> None:
        self.args, self.place = args, place
        self.pictures = data.Pictures(args.data / "train", args.size, args.seed, varied=True)
        self.test = data.Pictures(args.data / "val", args.size, args.seed, varied=False)
        if self.test.classes != self.pictures.classes:
            raise SystemExit(f"train and val of {args.data} do not have the same classes")
        self.batch = args.batch * place.size
        self.steps = len(self.pictures) // place.size // args.batch
        if self.steps == 0:
            raise SystemExit(f"{len(self.pictures)} pictures are less than one batch of {self.batch}")
        self.peak = args.lr if args.lr is not None else 0.1 * self.batch / STANDARD_BATCH

        torch.manual_seed(args.seed)
        model = resnet50(len(self.pictures.classes)).to(place.device, memory_format=torch.channels_last)
        self.ddp = DistributedDataParallel(model)
        method = args.method or paper_method(self.batch, self.steps)
        self.state = scalecom.register(self.ddp, method, rates=args.rates)  # the line
        self.optimizer = torch.optim.SGD(model.parameters(), self.peak, momentum=0.9, weight_decay=1e-4)
        self.parts = {"model": model, "optimizer": self.optimizer}

    def run(self) -> None:
        done = checkpoint.load(self.args.out, self.state, self.place.device, **self.parts)
        for epoch in range(done, self.args.epochs):
            began = time.monotonic()
            loss = self.train(epoch)
            top1 = self.evaluate()
            checkpoint.save(self.args.out, epoch + 1, self.state, **self.parts)
            if self.place.first:
                rate = self.state.stats()["effective_rate"]
                print(
                    f"epoch {epoch + 1}: loss {loss:.4f}, top-1 {100 * top1:.2f}%, {rate:.1f}x less sent than "
                    f"dense, {time.monotonic() - began:.0f} s", flush=True,
                )

    def train(self, epoch: int) -> float:
        """One epoch; the mean loss of its batches."""
        self.ddp.train()
        batches = data.training_batches(
            self.pictures, epoch, self.args.batch, self.place.rank, self.place.size, self.args.workers
        )
        total = torch.zeros((), device=self.place.device)
        for step, (pictures, labels) in enumerate(batches):
            rate = learning_rate(self.peak, epoch + step / self.steps, self.batch)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.optimizer.zero_grad()
            with torch.autocast(self.place.device.type, torch.bfloat16, enabled=self.args.amp):
                loss = nn.functional.cross_entropy(self.ddp(self.put(pictures)), self.put(labels))
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return self.place.total(float(total))[0] / (self.steps * self.place.size)

    @torch.no_grad()
    def evaluate(self) -> float:
        """The share of the test pictures that are named right at the first guess."""
        model = self.ddp.module.eval()
        right = 0
        for pictures, labels in data.test_batches(
            self.test, self.args.batch, self.place.rank, self.place.size, self.args.workers
        ):
            with torch.autocast(self.place.device.type, torch.bfloat16, enabled=self.args.amp):
                guesses = model(self.put(pictures)).argmax(1)
            right += int((guesses == self.put(labels)).sum())
        return self.place.total(right)[0] / len(self.test)

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        layout = torch.channels_last if tensor.dim() == 4 else torch.preserve_format
        return tensor.to(self.place.device, non_blocking=True, memory_format=layout)


def main() -> None:
    args = arguments()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    Trainer(args, join()).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
