"""Nothing is lost under FSDP2: random lives, in which every node's gradient is known to the last number.

A life is a row of chapters. Each is a job of its own, with its own numbers of nodes and shards, that
takes up the memories that the one before has saved. A chapter that ends in a fault saves nothing: the
next takes up what it had taken up itself."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import scalecom
import torch
from devices import DEVICE
from sharded import mesh_of
from torch import nn
from torch.distributed.fsdp import fully_shard

BETA = 0.1
METHOD = f"scalecom,rate=8,beta={BETA},first=compressed,check=conserve"
PLACES = [(2, 2), (1, 2), (2, 1), (3, 1), (4, 1), (1, 4)]
SHAPES = {"a": (31, 9), "b": (10, 17), "c": (6, 3, 5)}  # rows that ranks do not share evenly


@dataclass(frozen=True)
class Chapter:
    number: int
    nodes: int
    shards: int
    actions: tuple[str, ...]
    faulty: bool


def draw_life(seed: int, chapters: int) -> list[Chapter]:
    draw = random.Random(seed)
    life = []
    for number in range(chapters):
        actions = draw.choices(["step", "skipped", "not finite"], weights=[6, 1, 1], k=draw.randint(3, 8))
        nodes, shards = draw.choice(PLACES)
        life.append(Chapter(number, nodes, shards, tuple(actions), draw.random() < 0.2))
    return life


class Part(nn.Module):
    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(shape, device=DEVICE))

    def forward(self, gradient: torch.Tensor) -> torch.Tensor:
        return (self.weight * gradient).sum()


class Model(nn.Module):
    """Whose gradient is whatever it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({name: Part(shape) for name, shape in SHAPES.items()})

    def forward(self, gradients: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.stack([part(gradients[name]) for name, part in self.parts.items()]).sum()


def gradients_of(chapter: int, action: int, rank: int, spoiled: bool) -> dict[str, torch.Tensor]:
    """Of one rank, with a NaN in one of them where it is the one to spoil the step."""
    draw = torch.Generator().manual_seed(1_000_000 * chapter + 1000 * action + rank)
    gradients = {name: torch.randn(shape, generator=draw) for name, shape in SHAPES.items()}
    if spoiled:
        gradients["b"].view(-1)[int(torch.randint(170, (), generator=draw))] = torch.nan
    return gradients


@dataclass
class Books:
    """What went in, less what came out, as means over nodes, and how much has moved."""

    left: dict[str, torch.Tensor] = field(
        default_factory=lambda: {n: torch.zeros(s, dtype=torch.float64) for n, s in SHAPES.items()}
    )
    moved: dict[str, torch.Tensor] = field(
        default_factory=lambda: {n: torch.zeros(s, dtype=torch.float64) for n, s in SHAPES.items()}
    )

    def add(self, chapter: Chapter, action: int, out: dict[str, torch.Tensor]) -> None:
        kind = chapter.actions[action]
        ranks = range(chapter.nodes * chapter.shards)
        given = [gradients_of(chapter.number, action, r, kind == "not finite" and r == 0) for r in ranks]
        for name, left in self.left.items():
            for node in range(chapter.nodes):
                own = [g[name].double() for g in given[node * chapter.shards : (node + 1) * chapter.shards]]
                mean = torch.stack(own).mean(0)
                # What is not finite at one of a node's ranks counts as nothing at that node.
                mean = torch.where(mean.isfinite(), mean, 0)
                left += mean / chapter.nodes
                self.moved[name] += mean.abs()
            if kind == "skipped":
                continue
            # A shard with such a number is NaN at every node, and nothing has come out of it.
            assert out[name].isnan().any() == (kind == "not finite" and name == "b")
            came = out[name].double().nan_to_num(nan=0)
            left -= came
            self.moved[name] += came.abs()

    def check(self, memories: list[dict[str, torch.Tensor]]) -> None:
        """Against what the nodes remember."""
        unit = float(torch.tensor(BETA))
        for name, left in self.left.items():
            mean = torch.stack([m[name].double() for m in memories]).mean(0) / unit
            lost = (mean - left).abs() / (1e-6 * (self.moved[name] + mean.abs()) + 1e-30)
            assert lost.max() <= 1, f"'{name}': {left.view(-1)[lost.argmax()]} is missing"


def play(
    rank: int, _size: int, chapter: Chapter, before: str | None, after: str | None
) -> tuple[list[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    """One rank's chapter: what came out of every action, and what its node remembers at the end."""
    mesh = mesh_of(chapter.nodes, chapter.shards)
    model = Model()
    for part in model.parts.values():
        fully_shard(part, mesh=mesh["shard"])
    fully_shard(model, mesh=mesh["shard"])
    state = scalecom.register_fsdp(model, METHOD, between=mesh["node"].get_group())
    if before is not None:
        state.load(before)
    results = []
    for number, kind in enumerate(chapter.actions):
        given = gradients_of(chapter.number, number, rank, kind == "not finite" and rank == 0)
        model({name: one.to(DEVICE) for name, one in given.items()}).backward()
        results.append({n: part.weight.grad.full_tensor().cpu() for n, part in model.parts.items()})
        model.zero_grad()
        if kind == "skipped":
            state.undo()
    if after is not None:
        state.save(after)
    prefix = f"node{state.node}."
    saved = {k.removeprefix(prefix): v for k, v in state.state_dict().items() if k.startswith(prefix)}
    return results, {n: saved[f"parts.{n}.weight"].full_tensor().cpu() for n in SHAPES}


def live(world, life: list[Chapter], folder: Path) -> None:
    saved, books = None, Books()
    for chapter in life:
        after = None if chapter.faulty else str(folder / f"chapter-{chapter.number}")
        outs = world(chapter.nodes * chapter.shards).run(play, chapter, saved, after)
        now = replace(books, left={n: t.clone() for n, t in books.left.items()},
                      moved={n: t.clone() for n, t in books.moved.items()})
        for action in range(len(chapter.actions)):
            now.add(chapter, action, outs[0][0][action])
        now.check([memories for _, memories in outs[:: chapter.shards]])
        if after is not None:
            saved, books = after, now


@pytest.mark.parametrize(
    ("seed", "chapters"), [(3, 8), pytest.param(2, 100, marks=pytest.mark.long)]
)
def test_nothing_is_lost(world, tmp_path: Path, seed: int, chapters: int) -> None:
    life = draw_life(seed, chapters)
    assert any(c.faulty for c in life) and any("not finite" in c.actions for c in life)
    live(world, life, tmp_path)


def test_the_books_find_what_is_lost(world, tmp_path: Path) -> None:
    """A chapter that takes up nothing, where the one before has left something."""
    first = Chapter(0, 2, 2, ("step", "step"), faulty=False)
    outs = world(4).run(play, first, None, str(tmp_path / "left"))
    books = Books()
    for action in range(2):
        books.add(first, action, outs[0][0][action])
    books.check([memories for _, memories in outs[::2]])
    second = replace(first, number=1)
    outs = world(4).run(play, second, None, None)
    for action in range(2):
        books.add(second, action, outs[0][0][action])
    with pytest.raises(AssertionError, match="is missing"):
        books.check([memories for _, memories in outs[::2]])
