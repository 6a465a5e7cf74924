"""Folders and files such as the program writes, made up, for the tests of the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCALECOM = "scalecom,rate=100,beta=0.1,warmup=800"


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def write_run(folder: Path, method: str = "dense", *, value: float = 92.5, seed: int = 1, epochs: int = 3,
              complete: bool = True, task: str = "fashion-mnist", learners: int = 4, **config: Any) -> Path:
    """Epochs rise to `value`; a run that is not complete lacks the last."""
    steps = 100 * epochs
    write_json(folder / "config.json", {
        "task": task, "method": method, "spec": method, "learners": learners, "seed": seed, "data": "",
        "steps": steps, "batch": 16, "learning_rate": 0.05, "learning_rate_warmup": 0.25} | config)
    sent = 2_454_204 if method == "dense" else 29_966
    lines = [{"step": 100 * e, "epoch": float(e), "loss": 1 / e, "test_loss": 1.1 / e,
              "value": value - 3 * (epochs - e), "bytes_per_rank": float(sent * 100 * e),
              "bytes_per_rank_step": float(sent), "seconds": 8.5 * e} for e in range(1, epochs + complete)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if complete:
        write_json(folder / "result.json", {
            "task": task, "method": method, "learners": learners, "seed": seed, "metric": "test accuracy (%)",
            "value": value, "steps": steps, "seconds": 86.2, "bytes_per_rank_step": float(sent),
            "max_rank_bytes": 2 * sent, "effective_rate": 2_454_204 / sent, "whole_run_rate": 1.0,
            "peak_bytes": 300_000_000})
    return folder


def write_similarity(run: Path, steps: int = 6) -> None:
    records = [{"step": 50 * i, "epoch": i / 2, "cosine_distance": 0.9 - 0.05 * i,
                "cosine_distance_min": 0.8 - 0.05 * i, "cosine_distance_max": 0.95 - 0.04 * i,
                "hamming": 0.8 - 0.03 * i, "contraction": 0.9, "contraction_exact": 0.7, "lemma1_bound": 0.95,
                "qq": {"quantiles": [0.1, 0.5, 0.9], "first": [-1.0 - i, 0.0, 1.0],
                       "second": [-1.1, 0.1, 0.9 + i]}}
               for i in range(1, steps + 1)]
    (run / "similarity.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


_GROWTH = {"dense": ("constant", 4e6, 0.0), "scalecom": ("constant", 6e4, 0.0), "topk": ("n", 4e4, 4e4)}


def _measured(method: str) -> dict[str, Any]:
    growth, least, more = _GROWTH[method]
    return {"method": method, "spec": method, "growth": growth, "ops_per_element": 5.0, "ns_per_element": 0.8,
            "copy_ns_per_element": 0.5, "method_bytes_per_element": 4.0, "timed_elements": 4_000_000,
            "traffic": [{"ranks": n, "bytes_per_rank_step": least / 2 + more * n / 2,
                         "max_rank_bytes": int(least + more * n)} for n in (2, 4, 8, 16, 32, 64)]}


def comparison_json() -> dict[str, Any]:
    values = {"dense": (91.0, 90.0), "scalecom": (90.8, 89.5), "topk": (91.1, None)}
    rows = []
    for method, of_method in values.items():
        for (learners, large), value, dense in zip(((8, False), (32, True)), of_method, values["dense"],
                                                   strict=True):
            row = {"method": method, "learners": learners, "seed": 1, "metric": "test accuracy (%)",
                   "value": value, "bytes_per_rank_step": 1e5, "max_rank_bytes": 2e5, "effective_rate": 81.9,
                   "ops_per_element": 5.0, "ns_per_element": 0.8, "copy_ns_per_element": 0.5, "peak_bytes": 3e8,
                   "spec": method, "large_batch": large, "batch": 16, "steps": 300, "seconds": 25.0,
                   "against_dense": None if value is None else value - dense}
            rows.append(row if value is not None else row | {"failure": "the loss is not finite"})
    return {"task": "fashion-mnist", "data": "", "seed": 1, "epochs": 3.0, "steps": None, "batch": None,
            "learning_rate": None, "warmup": 0.1, "rows": rows,
            "growth": {method: growth for method, (growth, *_) in _GROWTH.items()},
            "methods": [_measured(method) for method in _GROWTH]}


def write_comparison(folder: Path, *, complete: bool = True) -> Path:
    write_json(folder / "settings.json", {"task": "fashion-mnist", "data": "", "seed": 1, "epochs": 3.0,
                                          "steps": None, "batch": None, "learning_rate": None, "warmup": 0.1})
    write_json(folder / "measured" / "dense.json", _measured("dense"))
    write_run(folder / "runs" / "dense-8", learners=8)
    write_run(folder / "runs" / "scalecom-8", SCALECOM, learners=8, value=92.3, complete=complete)
    if complete:
        write_json(folder / "compare.json", comparison_json())
        write_run(folder / "runs" / "topk-8", "topk,rate=100", learners=8, complete=False)
        write_json(folder / "runs" / "topk-8.failed.json", {"failure": "the loss is not finite at step 301"})
    return folder


def reproduction_json() -> dict[str, Any]:
    common = {"version": 1, "task": "cifar10,model=resnet18", "learners": 32, "groups": None,
              "metric": "test accuracy (%)", "runs_wanted": 3, "effective_rate_of": "all traffic",
              "inside_bytes_per_rank_step": None}
    return {"rows": [
        common | {"recipe": "resnet18-dense", "about": "the baseline", "method": "dense", "mean": 93.9,
                  "runs": [{"seed": 1, "value": 93.9}], "effective_rate": 1.0, "baseline": None,
                  "difference": None},
        common | {"recipe": "resnet18-32x", "about": "groups of 8", "method": "scalecom,rate=92", "groups": 8,
                  "mean": 93.5, "runs": [{"seed": s, "value": 93.5} for s in (1, 2, 3)], "effective_rate": 80.2,
                  "effective_rate_of": "between groups", "inside_bytes_per_rank_step": 78.2e6,
                  "baseline": "resnet18-dense",
                  "difference": {"mean": -0.4, "pairs": 3, "half_width_95": 0.21, "interval_95": [-0.61, -0.19],
                                 "interval_over": "seeds"}},
        common | {"recipe": "resnet18-beta1", "about": "", "method": "scalecom,rate=92,beta=1", "mean": 91.2,
                  "runs": [{"seed": 1, "value": 91.2}], "effective_rate": 80.2, "baseline": "resnet18-dense",
                  "difference": {"mean": -2.7, "pairs": 1, "half_width_95": None, "interval_95": None,
                                 "interval_over": None}},
    ]}


def write_reproduction(folder: Path) -> Path:
    write_json(folder / "table.json", reproduction_json())
    for seed in (1, 2, 3):
        write_run(folder / "resnet18-32x" / f"seed-{seed}", "scalecom,rate=92", seed=seed, value=93.4 + seed / 10,
                  task="cifar10,model=resnet18", learners=32, recipe="resnet18-32x@1")
    write_run(folder / "resnet18-dense" / "seed-1", value=93.9, task="cifar10,model=resnet18", learners=32,
              recipe="resnet18-dense@1")
    return folder


def plan_json(sweep: str | None = None) -> dict[str, Any]:
    rows = []
    for workers in (8, 16, 32) if sweep else (128,):
        methods = (("dense", 0.0, 30.0), ("scalecom,rate=100", 0.5, 0.6), ("dgc", 0.0, 0.4))
        for method, compress, exposed in methods:
            step = 20.0 + compress + exposed
            rows.append({"method": method, "workers": workers, "batch": 8, "bandwidth": 1.25e9 * workers / 8,
                         "step_ms": step, "compute_ms": 20.0, "compress_ms": compress,
                         "compress_measured": method != "dgc", "comm_ms": 2 * exposed, "exposed_comm_ms": exposed,
                         "comm_share": exposed / step, "speedup": 50.0 / step, "effective_rate": 90.0,
                         "pays_below": None if method == "dense" else 4e9, "pays_always": False,
                         "note": "a second round" if method == "scalecom,rate=100" else ""})
    return {"model": "resnet50", "parameters": 25_557_032, "sample": "image", "groups": 1, "overlap": True,
            "kernels": {"device": "NVIDIA H200", "source": "docs"}, "sweep": sweep, "rows": rows,
            "advice": "Use scalecom,rate=100: 2.37x faster than dense."}


def write_everything(folder: Path) -> list[Path]:
    """One of each, and paths to give."""
    write_run(folder / "runs" / "dense", value=92.87)
    write_run(folder / "runs" / "scalecom", SCALECOM, value=92.58)
    write_similarity(folder / "runs" / "scalecom")
    write_run(folder / "runs" / "late", SCALECOM, seed=2, complete=False)
    wide = write_run(folder / "runs" / "wide", SCALECOM, learners=8)
    write_json(wide / "score.json", {"metric": "BLEU", "value": 33.2, "better": "more", "paired": {
        "against": "runs/dense", "difference": -0.2, "interval_95": [-0.8, 0.35], "p_value": 0.3}})
    return [folder / "runs", write_comparison(folder / "table1"), write_reproduction(folder / "reproduction"),
            write_json(folder / "plan.json", plan_json()), write_json(folder / "sweep.json", plan_json("workers")),
            write_json(folder / "network.json", plan_json("bandwidth"))]


HOSTILE = "scalecom</script><script>window.harmed=1</script><img src=x onerror=window.harmed=1>&amp;'\"{{css}}"


def write_hostile(folder: Path) -> list[Path]:
    """Everything that is text, hostile."""
    run = write_run(folder / "<b>run", HOSTILE, task=HOSTILE)
    write_run(folder / "dense", task=HOSTILE)
    result = json.loads((run / "result.json").read_text())
    write_json(run / "result.json", result | {"metric": HOSTILE})
    write_similarity(run)
    late = write_run(folder / "recipe", task=HOSTILE, recipe=f"{HOSTILE}@1", complete=False)
    comparison = comparison_json()
    comparison["task"] = HOSTILE
    comparison["growth"][HOSTILE] = HOSTILE
    for name in ("rows", "methods"):
        comparison[name].append(comparison[name][1] | {"method": HOSTILE, "metric": HOSTILE, "failure": HOSTILE})
    table = reproduction_json()
    for row in table["rows"]:
        row |= {"recipe": HOSTILE + row["recipe"], "about": HOSTILE, "metric": HOSTILE, "method": HOSTILE}
    plan = plan_json() | {"model": HOSTILE, "advice": HOSTILE, "kernels": {"device": HOSTILE}}
    plan["rows"][1] |= {"method": HOSTILE, "note": HOSTILE}
    return [run, folder / "dense", late, write_json(folder / "c.json", comparison),
            write_json(folder / "r.json", table), write_json(folder / "p.json", plan)]
