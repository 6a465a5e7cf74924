"""What docs/theory.md shows: trains what it needs, and draws every figure from the files beside it.

    build/release/bench/theory_figures docs/theory
    python3 bench/theory.py train --program build/release/cli/scalecom --data DIR
    python3 bench/theory.py draw

`train` writes docs/theory/similarity.json from runs on Fashion-MNIST and on CIFAR-10, whose folder is DIR. `draw`
makes the SVG files from the JSON files.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "theory"

METHOD = "scalecom,rate=100,beta=0.1"
BATCH = 32
# The same for any number of learners, so that only their number differs.
LEARNING_RATE = 0.05


@dataclass(frozen=True)
class Run:
    """A training, and how often it is looked at."""
    name: str
    task: str
    learners: int
    steps: int
    every: int
    more: str = ""  # of the method


FASHION = "fashion-mnist"
CIFAR = "cifar10,model=resnet8"
RUNS = (
    Run("4 learners", FASHION, 4, 300, 6),
    Run("8 learners", FASHION, 8, 300, 6),
    Run("32 learners", FASHION, 32, 300, 6),
    Run("32 in groups of 8", FASHION, 32, 300, 6, ",groups=8"),
    Run("32, a random set", FASHION, 32, 300, 6, ",select=random"),
    Run("4 learners", CIFAR, 4, 200, 4),
    Run("32 learners", CIFAR, 32, 200, 4),
)

COLOURS = ("#1f77b4", "#d95f02", "#2a9d5c", "#9467bd", "#c03a4b", "#7f7f7f")
STYLE = """
  text { font: 11px sans-serif; fill: #333 } .title { font-weight: bold } .axis { stroke: #888 }
  .grid { stroke: #ddd } .guide { stroke: #888; stroke-dasharray: 2 3; fill: none }
  .line { fill: none; stroke-width: 1.6 } .paper { fill: #fff }
  @media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #333 } .paper { fill: #161616 } }
"""


@dataclass
class Axis:
    """A range of values, straight or logarithmic, and where its ticks are."""
    label: str
    low: float
    high: float
    ticks: list[float]
    log: bool = False

    def share(self, value: float) -> float:
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def text_of(number: float) -> str:
    return f"{number:.0e}".replace("e-0", "e-") if 0 < abs(number) < 1e-3 else f"{number:g}"


@dataclass
class Panel:
    """One plot: lines and points over two axes."""
    title: str
    x: Axis
    y: Axis
    width: int = 330
    height: int = 250
    parts: list[str] = field(default_factory=list)
    names: list[tuple[str, str, str]] = field(default_factory=list)

    LEFT, RIGHT, TOP, BOTTOM = 46, 8, 22, 34

    def place(self, x: float, y: float) -> tuple[float, float]:
        inside = self.width - self.LEFT - self.RIGHT, self.height - self.TOP - self.BOTTOM
        return self.LEFT + self.x.share(x) * inside[0], self.TOP + (1 - self.y.share(y)) * inside[1]

    def line(self, points: list[tuple[float, float]], colour: str, name: str = "", dash: str = "") -> None:
        inside = [p for p in points if self.y.low <= p[1] <= self.y.high and self.x.low <= p[0] <= self.x.high]
        path = " ".join("{:.1f},{:.1f}".format(*self.place(*p)) for p in inside)
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline class="line" stroke="{colour}"{extra} points="{path}"/>')
        if name:
            self.names.append((name, colour, dash))

    def points(self, points: list[tuple[float, float]], colour: str, name: str = "", radius: float = 1.8) -> None:
        for point in points:
            x, y = self.place(*point)
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}" fill-opacity=".7"/>')
        if name:
            self.names.append((name, colour, "dot"))

    def guide(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        (x1, y1), (x2, y2) = self.place(*start), self.place(*end)
        self.parts.append(f'<line class="guide" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def frame(self) -> list[str]:
        bottom, right = self.height - self.BOTTOM, self.width - self.RIGHT
        frame = [f'<text class="title" x="{self.LEFT}" y="14">{self.title}</text>']
        for tick in self.x.ticks:
            x = self.place(tick, self.y.low)[0]
            frame += [f'<line class="grid" x1="{x:.1f}" y1="{self.TOP}" x2="{x:.1f}" y2="{bottom}"/>',
                      f'<text x="{x:.1f}" y="{bottom + 13}" text-anchor="middle">{text_of(tick)}</text>']
        for tick in self.y.ticks:
            y = self.place(self.x.low, tick)[1]
            frame += [f'<line class="grid" x1="{self.LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>',
                      f'<text x="{self.LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{text_of(tick)}</text>']
        middle = (self.LEFT + right) / 2
        return [*frame, f'<text x="{middle}" y="{bottom + 28}" text-anchor="middle">{self.x.label}</text>',
                f'<text transform="translate(11 {(self.TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
                f'{self.y.label}</text>']

    def legend(self) -> list[str]:
        legend = []
        for i, (name, colour, dash) in enumerate(self.names):
            y = self.height + 12 + 14 * i
            if dash == "dot":
                legend.append(f'<circle cx="{self.LEFT + 8}" cy="{y - 4}" r="3" fill="{colour}"/>')
            else:
                extra = f' stroke-dasharray="{dash}"' if dash else ""
                legend.append(f'<line class="line" stroke="{colour}"{extra} x1="{self.LEFT}" y1="{y - 4}" '
                              f'x2="{self.LEFT + 18}" y2="{y - 4}"/>')
            legend.append(f'<text x="{self.LEFT + 24}" y="{y}">{name}</text>')
        return legend


def svg_of(panels: list[Panel]) -> str:
    """The panels side by side, each with its legend below it."""
    width = sum(panel.width for panel in panels)
    height = max(panel.height + 14 * len(panel.names) for panel in panels) + 10
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}">',
             f"<style>{STYLE}</style>", f'<rect class="paper" width="{width}" height="{height}"/>']
    left = 0
    for panel in panels:
        lines += [f'<g transform="translate({left} 0)">', *panel.frame(), *panel.parts, *panel.legend(), "</g>"]
        left += panel.width
    return "\n".join([*lines, "</svg>"]) + "\n"


def read(name: str) -> dict[str, Any]:
    file = json.loads((FOLDER / f"{name}.json").read_text())
    if "columns" in file:
        file["rows"] = [dict(zip(file["columns"], row)) for row in file["rows"]]
    return file


UNIT = [0, 0.2, 0.4, 0.6, 0.8, 1]


def draw_lemma1() -> str:
    rows = read("lemma1")["rows"]
    panels = []
    for select, title in (("chunk", "the largest of each chunk"), ("exact", "the k largest of all")):
        panel = Panel(title, Axis("Lemma 1's bound", 0, 1, UNIT), Axis("measured contraction", 0, 1, UNIT))
        panel.guide((0, 0), (1, 1))
        for colour, name in zip(COLOURS, dict.fromkeys(row["distribution"] for row in rows)):
            chosen = [row for row in rows if row["distribution"] == name and row["select"] == select]
            panel.points([(row["lemma1_bound"], row["contraction"]) for row in chosen], colour, name)
        panels.append(panel)
    return svg_of(panels)


def draw_lemma2() -> str:
    rows = read("lemma2")["rows"]
    correlation = Axis("correlation of workers", 0, 1, UNIT)
    left = Panel("left behind", correlation, Axis("contraction", 0.6, 1, [0.6, 0.7, 0.8, 0.9, 1]))
    right = Panel("wrong entries", correlation, Axis("Hamming distance", 0, 1, UNIT))
    for colour, workers in zip(COLOURS, dict.fromkeys(row["workers"] for row in rows)):
        chosen = [row for row in rows if row["workers"] == workers]
        left.line([(row["correlation"], row["contraction"]) for row in chosen], colour, f"{workers} workers")
        left.line([(row["correlation"], row["lemma2_bound"]) for row in chosen], colour, "", "5 3")
        right.line([(row["correlation"], row["hamming"]) for row in chosen], colour)
    exact = [(row["correlation"], row["contraction_exact"]) for row in chosen]
    left.line(exact, COLOURS[-1], "exact set, 64 workers", "1 3")
    left.names.append(("dashed: Lemma 2's bound", COLOURS[-1], "5 3"))
    return svg_of([left, right])


def draw_descent() -> str:
    rows = read("descent")["rows"]
    steps = min(row["steps"] for row in rows)
    workers = sorted({row["workers"] for row in rows})
    methods = ("dense", "scalecom,beta=1", "scalecom,beta=0.1")
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    panels = []

    def error(problem: str, method: str, n: int) -> float:
        return fmean(row[method] for row in rows
                     if (row["problem"], row["workers"], row["steps"]) == (problem, n, steps))

    for problem in problems:
        values = [error(problem, method, n) for method in methods for n in workers]
        low, high = min(values) * 0.8, max(values) * 1.25
        ticks = [d * 10**e for e in range(-6, 3) for d in (1, 2, 5) if low <= d * 10**e <= high]
        panel = Panel(problem, Axis("workers", 1, 64, workers, log=True),
                      Axis("mean squared gradient", low, high, ticks, log=True))
        first = error(problem, "dense", 1)
        panel.guide((1, first), (64, max(low, first / 8)))
        for colour, method in zip(COLOURS, methods):
            panel.line([(n, error(problem, method, n)) for n in workers], colour, method)
        panel.names.append(("1 over the root of the workers", "#888", "2 3"))
        panels.append(panel)
    ratios = Panel("ScaleCom over dense", Axis("workers", 1, 64, workers, log=True),
                   Axis("ratio", 0.8, 2.6, [1, 1.5, 2, 2.5]))
    for problem, dash in zip(problems, ("", "5 3")):
        for colour, method in zip(COLOURS[1:], methods[1:]):
            points = [(n, error(problem, method, n) / error(problem, "dense", n)) for n in workers]
            ratios.line(points, colour, f"{problem}, {method}", dash)
    return svg_of([*panels, ratios])


def draw_similarity() -> str:
    rows = read("similarity")["rows"]
    panels = []
    for task in (FASHION, CIFAR):
        chosen = [row for row in rows if row["task"] == task]
        last = max(row["lines"][-1]["step"] for row in chosen)
        steps = Axis("step", 0, last, [last * i / 4 for i in range(5)])
        title = task.split(",", maxsplit=1)[0]
        distances = Panel(f"{title}: memories", steps, Axis("cosine distance", 0, 1.2, [*UNIT, 1.2]), width=280)
        sets = Panel(f"{title}: entries sent", steps, Axis("Hamming distance", 0, 1, UNIT), width=280)
        for colour, row in zip(COLOURS, chosen):
            lines = row["lines"]
            distances.line([(line["step"], line["cosine_distance"]) for line in lines], colour, row["name"])
            sets.line([(line["step"], line["hamming"]) for line in lines], colour)
        panels += [distances, sets]
    return svg_of(panels)


def draw_bound_and_quantiles() -> str:
    rows = read("similarity")["rows"]
    ticks = [0.75, 0.8, 0.85, 0.9, 0.95, 1]
    bound = Panel("Lemma 1 in training", Axis("Lemma 1's bound", 0.75, 1, ticks),
                  Axis("measured contraction", 0.75, 1, ticks))
    bound.guide((0.75, 0.75), (1, 1))
    scale = [-1, -0.5, 0, 0.5, 1]
    quantiles = Panel("Q-Q of learners 0 and 1, at the end", Axis("learner 0, over the largest", -1, 1, scale),
                      Axis("learner 1, over the same", -1, 1, scale))
    quantiles.guide((-1, -1), (1, 1))
    for colour, row in zip(COLOURS, [row for row in rows if row["task"] == FASHION]):
        bound.points([(line["lemma1_bound"], line["contraction"]) for line in row["lines"]], colour, row["name"])
        qq = row["qq"]
        unit = max(abs(value) for value in [*qq["first"], *qq["second"]])
        quantiles.points([(a / unit, b / unit) for a, b in zip(qq["first"], qq["second"])], colour, radius=2.2)
    return svg_of([bound, quantiles])


def row_of(run: Run, program: str, data: str) -> dict[str, Any]:
    """What a training leaves, without the quantiles of all but its last line."""
    method = METHOD + run.more
    with tempfile.TemporaryDirectory(prefix="scalecom_theory_") as folder:
        out = Path(folder) / "run"
        command = [program, "train", "--task", run.task, "--learners", str(run.learners), "--batch", str(BATCH),
                   "--lr", str(LEARNING_RATE), "--steps", str(run.steps), "--method", method,
                   "--similarity-every", str(run.every), "--out", str(out)]
        if run.task == CIFAR:
            command += ["--data", data]
        subprocess.run(command, check=True)
        lines = [json.loads(line) for line in (out / "similarity.jsonl").open()]
        value = json.loads((out / "result.json").read_text())["value"]
    quantiles = lines[-1]["qq"]
    for line in lines:
        del line["qq"]
    rounded = [{k: round(v, 5) if isinstance(v, float) else v for k, v in line.items()} for line in lines]
    return {"name": run.name, "task": run.task, "learners": run.learners, "method": method, "value": value,
            "qq": quantiles, "lines": rounded}


def train(program: str, data: str) -> None:
    rows = []
    for run in RUNS:
        rows.append(json.dumps(row_of(run, program, data)))
        head = f'"batch": {BATCH}, "learning_rate": {LEARNING_RATE}'
        body = ",\n".join(rows)
        (FOLDER / "similarity.json").write_text(f'{{{head}, "rows": [\n{body}\n]}}\n')


FIGURES = {"lemma1": draw_lemma1, "lemma2": draw_lemma2, "descent": draw_descent, "similarity": draw_similarity,
           "similarity_bound": draw_bound_and_quantiles}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("--program", required=True)
    training.add_argument("--data", required=True)
    commands.add_parser("draw")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if arguments.command == "train":
        train(arguments.program, arguments.data)
        return
    for name, draw in FIGURES.items():
        path = FOLDER / f"{name}.svg"
        path.write_text(draw())
        print(path)


if __name__ == "__main__":
    main()
