"""What crosses the network, by the number of learners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from scalecom.report import methods, wording
from scalecom.report.figures.figure import Figure, View, doubling, entries, line, logarithmic
from scalecom.report.sources.comparisons import Measured, Traffic
from scalecom.report.sources.runs import Run

_HOVER = "%{y:.3~s}B among %{x}"


def measured_traffic(title: str, measured: Sequence[Measured]) -> Figure:
    looks = methods.looks_of_methods([one.method for one in measured])
    ranks = doubling("Learners", (moved.ranks for one in measured for moved in one.traffic))

    def view(label: str, title: str, take: Callable[[Traffic], float | None]) -> View:
        traces = []
        for one in sorted(measured, key=lambda one: methods.family(one.method) == "scalecom"):
            points = [(moved.ranks, take(moved)) for moved in one.traffic if take(moved)]
            if points:
                traces.append(line(looks[one.method], one.method, *zip(*points, strict=True), _HOVER))
        moved_bytes = [y for trace in traces for y in trace["y"]]
        return View(label, traces, ranks, logarithmic(title, moved_bytes, wording.bytes_text))

    views = [
        view("busiest rank", "Sent and received in a step (bytes)", lambda moved: moved.max_rank_bytes),
        view("sent, mean of ranks", "Sent by a rank in a step (bytes)", lambda moved: moved.bytes_per_rank_step),
    ]
    about = "Both axes are logarithmic: a flat line is traffic that does not grow with the number of learners."
    return Figure(title, about, views, entries(looks), height=420)


def traffic_of_runs(title: str, runs: Sequence[Run]) -> Figure | None:
    """Of complete runs of one task, the mean of those of one method and number of learners, which is all that
    a step's bytes after the warm-up go by; None where no method but dense was run with two numbers of
    learners."""
    all_sent: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    method: dict[str, str] = {}  # by spec
    for run in runs:
        if run.outcome and run.outcome.bytes_per_rank_step:
            spec = _without_warmup(run.spec)
            all_sent[spec][run.learners].append(run.outcome.bytes_per_rank_step)
            method.setdefault(spec, _without_warmup(run.method))
    several = {spec: {n: sum(found) / len(found) for n, found in sorted(by_learners.items())}
               for spec, by_learners in all_sent.items() if len(by_learners) > 1}
    if all(methods.family(spec) == "dense" for spec in several):
        return None
    short = methods.labels([method[spec] for spec in several])
    looks = methods.looks((spec, short[method[spec]], method[spec]) for spec in several)
    traces = [line(looks[spec], spec, list(figures), list(figures.values()), _HOVER)
              for spec, figures in several.items()]
    sent_bytes = [figure for figures in several.values() for figure in figures.values()]
    view = View("", traces, doubling("Learners", (n for figures in several.values() for n in figures)),
                logarithmic("Sent by a rank in a step, mean (bytes)", sent_bytes, wording.bytes_text))
    about = "Counted in the runs themselves, after any warm-up. Both axes are logarithmic."
    if any(run.has_groups for run in runs if _without_warmup(run.spec) in several):
        about = f"{about} {wording.BETWEEN_GROUPS}"
    return Figure(title, about, [view], entries(looks))


def _without_warmup(method: str) -> str:
    return ",".join(option for option in method.split(",") if not option.startswith("warmup="))
