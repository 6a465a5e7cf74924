"""Pairs of sentences in plain text, as subwords, in batches of about equally many tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from .model import BEGIN, END, PAD

try:
    import sentencepiece
except ImportError as error:
    raise SystemExit(
        "this recipe needs sentencepiece and sacrebleu: pip install -r examples/wmt/requirements.txt"
    ) from error

Batch = tuple[torch.Tensor, torch.Tensor]


def lines_of(file: Path) -> list[str]:
    if not file.is_file():
        raise SystemExit(f"{file} is not there: --data names the folder of train, valid and test, in both languages")
    return file.read_text(encoding="utf-8").splitlines()


def subwords(folder: Path, files: list[Path], size: int) -> sentencepiece.SentencePieceProcessor:
    """One vocabulary of both languages, learnt by the first rank where it is not there yet."""
    model = folder / "subwords.model"
    if dist.get_rank() == 0 and not model.exists():
        for file in files:
            lines_of(file)
        folder.mkdir(parents=True, exist_ok=True)
        sentencepiece.SentencePieceTrainer.train(
            input=[str(f) for f in files], model_prefix=str(folder / "learning"), vocab_size=size,
            model_type="bpe", character_coverage=1.0, pad_id=PAD, bos_id=BEGIN, eos_id=END, unk_id=3,
            hard_vocab_limit=False, minloglevel=2,
        )
        (folder / "learning.model").rename(model)
    dist.barrier()
    return sentencepiece.SentencePieceProcessor(model_file=str(model))


@dataclass(frozen=True)
class Sentences:
    """All sentences of a file as one array, so that millions of them take little."""

    tokens: torch.Tensor
    ends: torch.Tensor

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.tokens[self.ends[index] : self.ends[index + 1]].long()

    def lengths(self) -> torch.Tensor:
        return self.ends.diff()


def read(file: Path, words: sentencepiece.SentencePieceProcessor) -> Sentences:
    encoded = words.encode(lines_of(file), add_eos=True)
    ends = torch.tensor([0, *map(len, encoded)]).cumsum(0)
    return Sentences(torch.tensor([t for e in encoded for t in e], dtype=torch.int32), ends)


def padded(sentences: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=PAD)


class Pairs:
    """What is trained with: pairs of at most `longest` tokens a side."""

    def __init__(self, source: Sentences, target: Sentences, longest: int) -> None:
        if len(source) != len(target):
            raise SystemExit(f"the two languages have {len(source)} and {len(target)} lines: they are no pairs")
        self.source, self.target = source, target
        self.lengths = torch.maximum(source.lengths(), target.lengths())
        self.used = (self.lengths <= longest).nonzero().flatten()

    def batches(self, epoch: int, seed: int, tokens: int, rank: int, ranks: int) -> list[list[int]]:
        """One epoch of a rank: lists of pairs that fill `tokens` at most, padding included. Pairs of
        like lengths are together; all ranks have equally many batches."""
        random = torch.Generator().manual_seed(hash((seed, epoch)))
        order = self.used[torch.randperm(len(self.used), generator=random)]
        order = order[self.lengths[order].argsort(stable=True)]
        batches: list[list[int]] = []
        widest = 0
        for pair, length in zip(order.tolist(), self.lengths[order].tolist(), strict=True):
            widest = max(widest, length)
            if not batches or widest * (len(batches[-1]) + 1) > tokens:
                batches.append([])
                widest = length
            batches[-1].append(pair)
        shuffled = torch.randperm(len(batches), generator=random).tolist()
        whole = len(batches) - len(batches) % ranks
        return [batches[i] for i in shuffled[rank:whole:ranks]]

    def batch(self, pairs: list[int]) -> Batch:
        """The sources, and the targets, each with its beginning and its end."""
        begin = torch.tensor([BEGIN])
        targets = [torch.cat((begin, self.target[p])) for p in pairs]
        return padded([self.source[p] for p in pairs]), padded(targets)
