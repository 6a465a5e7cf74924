"""Pictures in a folder for each class, and the crops that are trained and tested with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

try:
    from PIL import Image
except ImportError as error:
    raise SystemExit(
        "this recipe reads pictures with Pillow: pip install -r examples/imagenet/requirements.txt"
    ) from error

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
ENDINGS = {".jpeg", ".jpg", ".png"}
Box = tuple[float, float, float, float]
Sample = tuple[torch.Tensor, int]


class Pictures(Dataset[Sample]):
    """folder/CLASS/PICTURE, with the classes in alphabetical order. A sample is asked for by (epoch,
    index): how a picture is varied depends on the seed and these alone."""

    def __init__(self, folder: Path, size: int, seed: int, varied: bool) -> None:
        if not folder.is_dir():
            raise SystemExit(f"{folder} is not there: --data names the folder that has train and val in it")
        self.classes = sorted(f.name for f in folder.iterdir() if f.is_dir())
        self.samples = [
            (file, label)
            for label, name in enumerate(self.classes)
            for file in sorted((folder / name).iterdir())
            if file.suffix.lower() in ENDINGS
        ]
        if not self.samples:
            raise SystemExit(f"{folder} has no folder with pictures ({', '.join(sorted(ENDINGS))}) in it")
        self.size, self.seed, self.varied = size, seed, varied

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, which: tuple[int, int]) -> Sample:
        epoch, index = which
        file, label = self.samples[index]
        with Image.open(file) as opened:
            picture = opened.convert("RGB")
        if self.varied:
            random = _generator(self.seed, epoch, index)
            picture = self._cut(picture, _random_box(*picture.size, random))
            if _draw(random, 0, 1) < 0.5:
                picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        else:
            picture = self._cut(picture, _middle(*picture.size))
        values = torch.from_numpy(numpy.array(picture)).permute(2, 0, 1).float().div_(255)
        return values.sub_(MEAN).div_(DEVIATION), label

    def _cut(self, picture: Image.Image, box: Box) -> Image.Image:
        return picture.resize((self.size, self.size), Image.Resampling.BILINEAR, box=box)


def _generator(*numbers: int) -> torch.Generator:
    return torch.Generator().manual_seed(hash(numbers))  # of integers: the same in every process


def _draw(random: torch.Generator, low: float, high: float) -> float:
    return low + (high - low) * float(torch.rand((), generator=random))


def _random_box(width: int, height: int, random: torch.Generator) -> Box:
    """8 to 100% of the picture, a little wider or higher than square."""
    for _ in range(10):
        area = _draw(random, 0.08, 1) * width * height
        ratio = math.exp(_draw(random, math.log(3 / 4), math.log(4 / 3)))
        wide, high = math.sqrt(area * ratio), math.sqrt(area / ratio)
        if wide <= width and high <= height:
            left, top = _draw(random, 0, width - wide), _draw(random, 0, height - high)
            return left, top, left + wide, top + high
    return _middle(width, height)


def _middle(width: int, height: int) -> Box:
    """The square in the middle, 7/8 of the shorter side: 224 of 256."""
    side = min(width, height) * 7 / 8
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def training_batches(
    pictures: Pictures, epoch: int, batch: int, rank: int, ranks: int, workers: int
) -> DataLoader[Sample]:
    """One epoch's batches of a rank. All ranks have equally many."""
    random = _generator(pictures.seed, epoch)
    order = torch.randperm(len(pictures), generator=random).tolist()
    own = [(epoch, index) for index in order[rank : len(order) - len(order) % ranks : ranks]]
    return DataLoader(
        pictures, batch, sampler=own, num_workers=workers, drop_last=True,
        pin_memory=torch.cuda.is_available(),
    )


def test_batches(
    pictures: Pictures, batch: int, rank: int, ranks: int, workers: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Every picture once, divided over the ranks."""
    own = [(0, index) for index in range(rank, len(pictures), ranks)]
    return iter(DataLoader(pictures, batch, sampler=own, num_workers=workers))
