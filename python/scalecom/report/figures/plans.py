"""What a step would take, by method."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scalecom.report import methods, wording
from scalecom.report.figures.figure import Figure, View, axis, doubling, entries, line, logarithmic, plain, tick
from scalecom.report.sources.plans import Plan, Row

_BITS = 8

# What a step is made of, one after the other.
_PARTS: tuple[tuple[str, str, Callable[[Row], float]], ...] = (
    ("computing", "@part-compute", lambda row: row.compute),
    ("compressing", "@part-compress", lambda row: row.compress or 0),
    ("waiting for the network", "@part-wait", lambda row: row.exposed),
)


def parts(title: str, rows: Sequence[Row]) -> Figure:
    """A bar a method, cut into what its step is made of."""
    labels = methods.labels([row.method for row in rows])
    numbers = list(range(len(rows)))
    traces = [
        {"type": "bar", "orientation": "h", "name": name, "legendgroup": name, "y": numbers,
         "x": [take(row) for row in rows], "customdata": [plain(labels[row.method]) for row in rows],
         "marker": {"color": colour}, "hovertemplate": f"{name} %{{x:.3f}} ms<extra>%{{customdata}}</extra>"}
        for name, colour, take in _PARTS
    ]
    unknown = ["" if row.compress is not None else " + ?" for row in rows]
    totals = {"type": "scatter", "mode": "text", "y": numbers, "x": [row.step for row in rows],
              "text": [f" {row.step:.3g} ms{more}" for row, more in zip(rows, unknown, strict=True)],
              "textposition": "middle right", "cliponaxis": False, "hoverinfo": "skip"}
    longest = max(row.step for row in rows)
    y_axis = axis("", tickvals=numbers, ticktext=[tick(labels[row.method]) for row in rows],
                  range=[len(rows) - 0.5, -0.5], showgrid=False)
    view = View("", [*traces, totals], axis("Step time (ms)", range=[0, 1.25 * longest]), y_axis,
                {"barmode": "stack", "bargap": 0.4})
    legend = [{"group": name, "label": name, "colour": colour, "dash": "block"} for name, colour, _ in _PARTS]
    return Figure(title, _not_measured(rows), [view], legend, height=110 + 34 * len(rows))


def sweep(title: str, plan: Plan) -> Figure:
    """A curve a method, over what the plan varies."""
    order = list(dict.fromkeys(row.method for row in plan.rows))
    looks = methods.looks_of_methods(order)
    at = plan.swept
    factor = _BITS if plan.sweep == "bandwidth" else 1
    values = [factor * at(row) for row in plan.rows]
    if plan.sweep == "bandwidth":
        x_axis = logarithmic("Bandwidth of a node, each way (bit/s)", values,
                             lambda bits: wording.scaled(bits, ""))
    else:
        x_axis = doubling("Workers" if plan.sweep == "workers" else "Samples a worker and step", values)

    def view(label: str, y_axis: dict[str, object], hover: str, take: Callable[[Row], float]) -> View:
        traces = []
        for method in sorted(order, key=lambda method: methods.family(method) == "scalecom"):
            points = sorted((factor * at(row), take(row)) for row in plan.rows if row.method == method)
            traces.append(line(looks[method], method, *zip(*points, strict=True), hover))
        return View(label, traces, x_axis, y_axis)

    views = [
        view("step time", logarithmic("Step time (ms)", [row.step for row in plan.rows], lambda ms: f"{ms:,g}"),
             "%{y:.3~g} ms", lambda row: row.step),
        view("speed-up", axis("Speed-up over dense", ticksuffix="×", rangemode="tozero"), "%{y:.2f}×",
             lambda row: row.speedup),
        view("communication", axis("Share of the step that waits for the network", tickformat=".0%", range=[0, 1]),
             "%{y:.1%}", lambda row: row.comm_share),
    ]
    return Figure(title, _not_measured(plan.rows), views, entries(looks), height=420)


def _not_measured(rows: Sequence[Row]) -> str:
    unknown = list(dict.fromkeys(row.method for row in rows if row.compress is None))
    if not unknown:
        return ""
    short = methods.labels([row.method for row in rows])
    return ("What compressing takes was not measured on this device, and is not counted, for "
            f"{'; '.join(short[method] for method in unknown)}: these steps are longer than shown.")
