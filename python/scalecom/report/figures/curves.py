"""Learning curves: what a run's metric and loss become, by epoch and by what was sent for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from scalecom.report import methods, wording
from scalecom.report.figures.figure import Figure, Trace, View, axis, band, entry, line, logarithmic
from scalecom.report.methods import Look
from scalecom.report.names import names
from scalecom.report.sources.runs import Epoch, Run, Series

_Take = Callable[[Epoch], float | None]

# As many epochs have a tick each.
_EVERY_EPOCH = 12
# From so many on, differences at the end are too small to be seen beside the beginning.
_LONG = 8


def learning_curves(title: str, runs: Sequence[Run]) -> Figure | None:
    """Of runs of one task and number of learners; None where no epoch of any is complete."""
    begun = [run for run in runs if run.epochs]
    if not begun:
        return None
    looks = looks_of_runs(begun)
    metric = wording.metric(metric_of(begun))
    last = max(run.epochs[-1].epoch for run in begun)
    epochs = axis("Epoch", **({"dtick": 1} if last <= _EVERY_EPOCH else {}))
    sent = [epoch.bytes_per_rank for run in begun for epoch in run.epochs if epoch.bytes_per_rank]
    by_epoch: _Take = lambda epoch: epoch.epoch
    by_bytes: _Take = lambda epoch: epoch.bytes_per_rank
    value: _Take = lambda epoch: epoch.value
    label, title_of_loss = _evaluated(begun[0].task)
    views = [
        _view("by epoch", begun, looks, by_epoch, value, epochs, axis(metric), "%{y:.2f} after epoch %{x:.4~g}"),
        _view("last half", _from(last / 2, begun) if last >= _LONG else [], looks, by_epoch, value, epochs,
              axis(metric), "%{y:.2f} after epoch %{x:.4~g}"),
        _view("by bytes", begun, looks, by_bytes, value,
              logarithmic("Sent by a rank so far (bytes)", sent, wording.bytes_text), axis(metric),
              "%{y:.2f} for %{x:.3~s}B"),
        _view("train loss", begun, looks, by_epoch, lambda epoch: epoch.loss,
              epochs, axis("Training loss, mean of the epoch"),
              "%{y:.4f} in epoch %{x:.4~g}"),
        _view(label, begun, looks, by_epoch, lambda epoch: epoch.test_loss,
              epochs, axis(title_of_loss), "%{y:.4f} after epoch %{x:.4~g}"),
    ]
    legend = [entry(look, look.label) for look in looks.values()]
    return Figure(title, _about(begun), [view for view in views if view.traces], legend)


def looks_of_runs(runs: Sequence[Run]) -> dict[Series, Look]:
    """By series. Its label is that of its traces' group, too."""
    named = names(runs)
    return methods.looks((run.series, named[run.series], run.method) for run in runs)


def _evaluated(task: str) -> tuple[str, str]:
    """What the loss besides training's is of, as a view and as an axis: `test_loss` is its key in any case."""
    name, *options = task.split(",")
    if name == "multi30k":
        return "validation loss", "Validation loss"
    if any(re.fullmatch(r"held_out=0*[1-9]\d*", option) for option in options):
        return "held-out loss", "Loss on what is held out of training"
    return "test loss", "Test loss"


def metric_of(runs: Sequence[Run]) -> str:
    return next((run.outcome.epoch_metric for run in runs if run.outcome), "")


def _view(label: str, runs: Sequence[Run], looks: dict[Series, Look], x: _Take, y: _Take, x_axis: dict[str, object],
          y_axis: dict[str, object], hover: str) -> View:
    traces: list[Trace] = []
    # What the eye is to find last is drawn last: over the others.
    for series, look in sorted(looks.items(), key=lambda one: one[1].family == "scalecom"):
        own = [run for run in runs if run.series == series]
        whole = [run for run in own if run.outcome]
        if len(whole) > 1:
            traces += _mean(look, whole, x, y, hover)
        for run in own if len(whole) < 2 else (run for run in own if not run.outcome):
            points = _points(run, x, y)
            if points:
                thin = {} if run.outcome else {"opacity": 0.6}
                traces.append(line(look, look.label, *zip(*points, strict=True), hover, **thin))
    return View(label, traces, x_axis, y_axis)


def _from(first: float, runs: Sequence[Run]) -> list[Run]:
    return [replace(run, epochs=tuple(epoch for epoch in run.epochs if epoch.epoch >= first)) for run in runs]


def _points(run: Run, x: _Take, y: _Take) -> list[tuple[float, float]]:
    both = ((x(epoch), y(epoch)) for epoch in run.epochs)
    return [(a, b) for a, b in both if a is not None and b is not None]


def _mean(look: Look, runs: Sequence[Run], x: _Take, y: _Take, hover: str) -> list[Trace]:
    """Over seeds, with a band from the lowest to the highest, at the steps that all have."""
    by_step = [{epoch.step: epoch for epoch in run.epochs} for run in runs]
    common = sorted(set.intersection(*(set(steps) for steps in by_step)))
    xs, low, mean, high = [], [], [], []
    for step in common:
        values = [y(steps[step]) for steps in by_step]
        at = x(by_step[0][step])
        if at is None or any(value is None for value in values):
            continue
        found = [value for value in values if value is not None]
        xs.append(at)
        low.append(min(found))
        high.append(max(found))
        mean.append(sum(found) / len(found))
    if not xs:
        return []
    return [*band(look.colour, look.label, xs, low, high), line(look, look.label, xs, mean, hover)]


def _about(runs: Sequence[Run]) -> str:
    notes = []
    seeds = {series: sum(run.series == series and run.outcome is not None for run in runs)
             for series in (run.series for run in runs)}
    if max(seeds.values()) > 1:
        notes.append("A line is the mean over seeds where there are several, its band their lowest and highest.")
    else:
        notes.append("One seed each.")
    if any(run.has_groups for run in runs):
        notes.append(wording.BETWEEN_GROUPS)
    ended = {"failed": sum(run.failure is not None for run in runs),
             "not complete": sum(run.outcome is None and run.failure is None for run in runs)}
    notes += [f"{wording.count(number, 'run')} {state}: the line ends where the run does."
              for state, number in ended.items() if number]
    return " ".join(notes)
