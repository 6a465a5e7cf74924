"""Trains Transformer-base to translate, with ScaleCom and the paper's settings.

    torchrun --nproc-per-node 8 -m examples.wmt.train --data DIR --out runs/wmt
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path

import scalecom
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from .. import checkpoint
from ..world import Place, join
from . import data
from .model import PAD, Transformer
from .search import translate

STANDARD_BATCH = 36_000  # tokens of all ranks together


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="has train.SOURCE, train.TARGET, valid.*, test.*")
    parser.add_argument("--out", type=Path, required=True, help="for checkpoints; a run found there goes on")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--method", help="by the size of the batch: see README.md")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--tokens", type=int, default=4500, help="of a rank and step, padding included")
    parser.add_argument("--longest", type=int, default=256, help="longer sentences are left out")
    parser.add_argument("--vocabulary", type=int, default=32_000)
    parser.add_argument("--lr", type=float, default=7e-4, help="the highest, after the warm-up")
    parser.add_argument("--lr-warmup", type=int, default=4000, help="steps")
    parser.add_argument("--every", type=int, default=2000, help="steps between checkpoints")
    parser.add_argument("--test-batch", type=int, default=64, help="sentences translated at once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--amp", action="store_true", help="compute in bfloat16 where that is safe")
    for name, value in (("width", 512), ("heads", 8), ("hidden", 2048), ("layers", 6)):
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def paper_method(tokens: int, steps: int) -> str:
    """The paper's settings, for a batch of so many tokens of all ranks."""
    beta = 1 if tokens <= STANDARD_BATCH else 0.1
    # The first layer is the embedding, and the output's weight: see README.md.
    return f"scalecom,rate=47,beta={beta},first=compressed,warmup={steps // 20}"


def learning_rate(peak: float, step: int, warmup: int) -> float:
    """Grows over the warm-up, then falls with the root of the steps."""
    return peak * min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5)


class Trainer:
    def __init__(self, args: argparse.Namespace, place: Place) -> None:
        self.args, self.place = args, place
        languages = (args.source, args.target)
        self.words = data.subwords(args.out, [args.data / f"train.{x}" for x in languages], args.vocabulary)
        self.pairs, self.valid = (
            data.Pairs(*(data.read(args.data / f"{part}.{x}", self.words) for x in languages), args.longest)
            for part in ("train", "valid")
        )
        torch.manual_seed(args.seed)
        self.model = Transformer(self.words.get_piece_size(), args.width, args.heads, args.hidden, args.layers)
        self.model.to(place.device)
        self.ddp = DistributedDataParallel(self.model)
        method = args.method or paper_method(args.tokens * place.size, args.steps)
        self.state = scalecom.register(self.ddp, method)  # the line
        self.optimizer = torch.optim.Adam(self.model.parameters(), args.lr, betas=(0.9, 0.98), eps=1e-9)
        self.parts = {"model": self.model, "optimizer": self.optimizer}

    def run(self) -> None:
        folder = self.args.out / "checkpoints"
        step = checkpoint.load(folder, self.state, self.place.device, **self.parts)
        batches, epoch = self._epoch(0), 0
        while step < self.args.steps:
            # Which batch a step has follows from its number alone.
            if step // len(batches) != epoch:
                epoch = step // len(batches)
                batches = self._epoch(epoch)
            loss = self.train(step, batches[step % len(batches)])
            step += 1
            if step % self.args.every == 0 or step == self.args.steps:
                tested = self.valid_loss()
                checkpoint.save(folder, step, self.state, **self.parts)
                if self.place.first:
                    rate = self.state.stats()["effective_rate"]
                    print(f"step {step}: loss {float(loss):.3f}, of the validation set {tested:.3f}, "
                          f"{rate:.1f}x less sent than dense", flush=True)
        bleu = self.bleu()
        if self.place.first:
            print(f"BLEU {bleu:.2f}")

    def _epoch(self, epoch: int) -> list[list[int]]:
        batches = self.pairs.batches(
            epoch, self.args.seed, self.args.tokens, self.place.rank, self.place.size
        )
        if not batches:
            raise SystemExit(f"there are less batches of {self.args.tokens} tokens than ranks")
        return batches

    def train(self, step: int, pairs: list[int]) -> torch.Tensor:
        self.ddp.train()
        # Dropout depends on the step and the rank alone, so that a run may stop anywhere.
        torch.manual_seed(hash((self.args.seed, step, self.place.rank)))
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.args.lr, step, self.args.lr_warmup)
        self.optimizer.zero_grad()
        loss = self.loss(self.ddp, self.pairs.batch(pairs), smoothing=0.1)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def loss(self, model: nn.Module, batch: data.Batch, smoothing: float, reduction: str = "mean") -> torch.Tensor:
        source, target = (t.to(self.place.device, non_blocking=True) for t in batch)
        with torch.autocast(self.place.device.type, torch.bfloat16, enabled=self.args.amp):
            scores = model(source, target[:, :-1])
        return nn.functional.cross_entropy(
            scores.flatten(0, 1).float(), target[:, 1:].flatten(), ignore_index=PAD,
            label_smoothing=smoothing, reduction=reduction,
        )

    @torch.no_grad()
    def valid_loss(self) -> float:
        """The mean loss of a token, without smoothing."""
        self.model.eval()
        loss = tokens = 0.0
        for chosen in self._shares(len(self.valid.source)):
            batch = self.valid.batch(list(chosen))
            loss += float(self.loss(self.model, batch, smoothing=0, reduction="sum"))
            tokens += int((batch[1][:, 1:] != PAD).sum())
        loss, tokens = self.place.total(loss, tokens)
        return loss / tokens

    def _shares(self, sentences: int) -> Iterator[range]:
        """This rank's sentences, some at a time."""
        own = range(self.place.rank, sentences, self.place.size)
        for first in range(0, len(own), self.args.test_batch):
            yield own[first : first + self.args.test_batch]

    def bleu(self) -> float:
        """Of the test set, by sacrebleu; each rank translates its share."""
        import sacrebleu

        self.model.eval()
        source = data.read(self.args.data / f"test.{self.args.source}", self.words)
        wanted = data.lines_of(self.args.data / f"test.{self.args.target}")
        found: dict[int, str] = {}
        for chosen in self._shares(len(source)):
            tokens = data.padded([source[i] for i in chosen]).to(self.place.device)
            for i, translation in zip(chosen, translate(self.model, tokens), strict=True):
                found[i] = self.words.decode(translation)
        shares: list[dict[int, str]] = [{}] * self.place.size
        dist.all_gather_object(shares, found)
        everything = {i: text for share in shares for i, text in share.items()}
        return sacrebleu.corpus_bleu([everything[i] for i in range(len(wanted))], [wanted]).score


def main() -> None:
    args = arguments()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    Trainer(args, join()).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
