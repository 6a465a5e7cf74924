"""Runs of `scalecom train`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from scalecom.report.pairs import Difference
from scalecom.report.sources.fields import Fields, read_lines, read_object
from scalecom.report.sources.similarity import Similarity, read_similarity


Series = tuple[object, ...]


@dataclass(frozen=True)
class Epoch:
    """A line of metrics.jsonl."""

    step: int
    epoch: float
    loss: float | None
    test_loss: float | None
    value: float | None
    bytes_per_rank: float | None  # so far


@dataclass(frozen=True)
class Outcome:
    """What a complete run came to."""

    metric: str
    value: float | None
    epoch_metric: str  # of the epochs' values: another one, where the run was scored apart
    bytes_per_rank_step: float | None  # with groups, as the rates below: what goes between them
    group: int | None  # learners of a group, inside which means are dense
    inside_bytes_per_rank_step: float | None
    effective_rate: float | None
    whole_run_rate: float | None
    seconds: float | None
    peak_bytes: float | None
    scored: Difference | None = None  # to the run that scripts/score has compared its text with


@dataclass(frozen=True)
class Run:
    path: Path
    task: str
    method: str  # as it was asked for
    spec: str  # the same with every option, in an order of its own
    learners: int
    seed: int
    steps: int
    batch: int | None
    learning_rate: float | None
    learning_rate_warmup: float | None  # share of the steps
    weight_decay: float | None
    optimizer: str
    momentum: float | None
    masked_momentum: bool
    recipe: str  # "" where the run comes from none, or from one that was overruled
    version: str  # of the recipe
    entrant: str = ""  # what its comparison calls the method; "" where it belongs to none
    place: str = ""  # where it lies, if nothing else tells it from another run of its seed
    epochs: tuple[Epoch, ...] = ()
    outcome: Outcome | None = None
    similarity: tuple[Similarity, ...] = ()
    failure: str | None = None

    @property
    def setting(self) -> tuple[object, ...]:
        """What runs share that can be compared. Masked momentum is no part of it: it goes by what was sent,
        and dense sends everything."""
        return (self.task, self.learners, self.batch, self.steps, self.learning_rate, self.learning_rate_warmup,
                self.weight_decay, self.optimizer, self.momentum)

    @property
    def series(self) -> Series:
        """What runs share that differ in nothing but their seeds."""
        return (*self.setting, self.masked_momentum, self.recipe, self.version, self.entrant, self.spec, self.place)

    @property
    def has_groups(self) -> bool:
        """Then its bytes are those that go between groups."""
        return any(option.startswith("groups=") for option in self.spec.split(","))

    @property
    def steps_done(self) -> int:
        if self.outcome:
            return self.steps
        return self.epochs[-1].step if self.epochs else 0


def is_run(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def is_result(fields: Fields) -> bool:
    return fields.has("task", "method", "learners", "seed", "metric", "value")


def read_run(folder: Path) -> Run:
    run = _described_by(folder, read_object(folder / "config.json"))
    metrics, result, score = folder / "metrics.jsonl", folder / "result.json", folder / "score.json"
    epochs = tuple(_epoch(line) for line in read_lines(metrics)) if metrics.is_file() else ()
    outcome = _outcome(read_object(result)) if result.is_file() else None
    if outcome and score.is_file():
        # Another program's judgement of what the model has made of the test set.
        scored = read_object(score)
        outcome = replace(outcome, metric=scored.text("metric"), value=scored.number_or_none("value"),
                          scored=_scored(scored.object("paired")))
    return replace(run, epochs=epochs, outcome=outcome, similarity=read_similarity(folder))


def _scored(paired: Fields | None) -> Difference | None:
    if paired is None:
        return None
    mean = paired.number_or_none("difference")
    return None if mean is None else Difference(mean, 1, None, paired.interval("interval_95"))


def run_of_result(fields: Fields) -> Run:
    """What `scalecom train --json` wrote: a run without its curves."""
    return replace(_described_by(fields.path, fields), outcome=_outcome(fields))


def _described_by(path: Path, fields: Fields) -> Run:
    method = fields.text("method")
    recipe, _, version = (fields.text_or_none("recipe") or "").partition("@")
    return Run(
        path=path,
        task=fields.text("task"),
        method=method,
        spec=fields.text_or_none("spec") or method,
        learners=fields.whole("learners"),
        seed=fields.whole("seed"),
        steps=fields.whole("steps"),
        batch=fields.whole_or_none("batch"),
        learning_rate=fields.number_or_none("learning_rate"),
        learning_rate_warmup=fields.number_or_none("learning_rate_warmup"),
        weight_decay=fields.number_or_none("weight_decay"),
        optimizer=fields.text_or_none("optimizer") or "sgd",  # as runs have it from before there was a choice
        momentum=fields.number_or_none("momentum"),
        masked_momentum=fields.flag("masked_momentum"),
        recipe=recipe,
        version=version,
    )


def _epoch(line: Fields) -> Epoch:
    return Epoch(
        step=line.whole("step"),
        epoch=line.number("epoch"),
        loss=line.number_or_none("loss"),
        test_loss=line.number_or_none("test_loss"),
        value=line.number_or_none("value"),
        bytes_per_rank=line.number_or_none("bytes_per_rank"),
    )


def _outcome(fields: Fields) -> Outcome:
    return Outcome(
        metric=fields.text("metric"),
        value=fields.number_or_none("value"),
        epoch_metric=fields.text("metric"),
        bytes_per_rank_step=fields.number_or_none("bytes_per_rank_step"),
        group=fields.whole_or_none("group"),
        inside_bytes_per_rank_step=fields.number_or_none("inside_bytes_per_rank_step"),
        effective_rate=fields.number_or_none("effective_rate"),
        whole_run_rate=fields.number_or_none("whole_run_rate"),
        seconds=fields.number_or_none("seconds"),
        peak_bytes=fields.number_or_none("peak_bytes"),
    )
