"""Plans: what they say, for people and machines, and the mistakes that can be made with them."""

import json
import resource

from program import MPIRUN, PROGRAM, expect_job_refused, expect_ok, expect_refused, mpirun, run, run_tests

RESNET = ("plan", "--model", "resnet50", "--workers", 128, "--tflops", 100, "--bandwidth", "32GB/s",
          "--batch", 8)
ROW = ("method", "workers", "batch", "step_ms", "compute_ms", "compress_ms", "comm_ms",
       "exposed_comm_ms", "comm_share", "speedup")


def planned(*arguments):
    return json.loads(expect_ok(run(*arguments, "--json", "-")).stdout)


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows_of(*arguments):
    return {row["method"]: row for row in planned(*arguments)["rows"]}


def changed(**changes):
    """The usual plan with some of its options given otherwise, or, where None, not at all."""
    options = {"model": "resnet50", "workers": 128, "tflops": 100, "bandwidth": "32GB/s", "batch": 8}
    options |= changes
    words = [(f"--{name.replace('_', '-')}", value) for name, value in options.items() if value is not None]
    return ("plan", *(word for pair in words for word in pair))


def test_for_people_and_machines(folder):
    text = expect_ok(run(*RESNET)).stdout
    assert "speed-up" in text and "Use scalecom" in text, text
    plan = planned(*RESNET)
    assert plan["advice"].startswith("Use scalecom"), plan["advice"]
    for row in plan["rows"]:
        assert all(key in row for key in ROW), row
        assert row["workers"] == 128 and row["batch"] == 8
        busy = row["compute_ms"] + row["compress_ms"]
        assert abs(row["step_ms"] - busy - row["exposed_comm_ms"]) < 1e-9, row
        assert abs(row["comm_share"] - row["exposed_comm_ms"] / row["step_ms"]) < 1e-12, row
        assert row["exposed_comm_ms"] <= row["comm_ms"] + 1e-9, row
    dense = next(row for row in plan["rows"] if row["method"] == "dense")
    assert dense["speedup"] == 1


def test_units_all_mean_the_same(folder):
    steps = {planned(*changed(bandwidth=text))["rows"][0]["step_ms"]
             for text in ("10Gbps", "10Gb/s", "10Gbit/s", "1.25GB/s", "1250 MB/s")}
    assert len(steps) == 1, steps


# The paper's own inputs: no overlap, and computing and dense communication alike at a batch of 8.
PAPER = ("--no-overlap", "--efficiency", 0.62, "--methods", "dense,scalecom")


def test_the_papers_figures(folder):
    for tflops, batch, speedup in ((100, 8, 2.0), (100, 32, 1.23), (300, 8, 4.1), (300, 32, 1.75)):
        rows = planned(*changed(tflops=tflops, batch=batch, bandwidth="64GB/s"), *PAPER)["rows"]
        dense, scalecom = (row["step_ms"] for row in rows)
        free = scalecom - rows[1]["compress_ms"]
        assert abs(dense / free / speedup - 1) < 0.08, (tflops, batch, dense / free)


def test_sweeps(folder):
    # Of the processor, which others may use at the same time.
    began = processor_seconds()
    plan = planned(*RESNET, "--latency", "10us", "--sweep", "workers=8..1024")
    assert processor_seconds() - began < 2
    workers = sorted({row["workers"] for row in plan["rows"]})
    assert workers == [8 << i for i in range(8)], workers
    assert "At workers 1024" in plan["advice"]
    assert [r["batch"] for r in planned(*RESNET, "--methods", "dense", "--sweep", "batch=8,32")["rows"]] == [8, 32]
    bandwidths = planned(*RESNET, "--methods", "dense", "--sweep", "bandwidth=1Gbit/s..5Gbit/s")["rows"]
    assert [row["bandwidth"] * 8 / 1e9 for row in bandwidths] == [1, 2, 4, 5]
    swept = ("--methods", "dense", "--latency", "1ms", "--sweep", "bandwidth=1Gbit/s..5Gbit/s")
    assert planned(*changed(bandwidth=None), *swept)["rows"] == planned(*RESNET, *swept)["rows"]
    text = expect_ok(run(*RESNET, "--sweep", "workers=8..16")).stdout
    assert "speed-up; workers" in text
    assert "; workers with batches of 8" in text, "a heading says nothing of what is swept"
    assert "; 1 worker with" in expect_ok(run(*changed(workers=1))).stdout


def test_internet_scale(folder):
    rows = rows_of("plan", "--model", "gpt2", "--workers", 256, "--step-ms", 500, "--bandwidth",
                   "100Mbit/s", "--latency", "80ms", "--batch", 1, "--methods",
                   "dense,scalecom,rate=400,first=compressed")
    assert rows["dense"]["step_ms"] > 70_000
    assert rows["scalecom,rate=400,first=compressed"]["speedup"] > 15


def test_groups(folder):
    groups = ("--groups", 8, "--inside-bandwidth", "300GB/s", "--methods", "dense,scalecom,topk")
    rows = rows_of(*changed(bandwidth="10Gbit/s"), *groups)
    alone = rows_of(*changed(bandwidth="10Gbit/s", workers=16), "--methods", "dense,scalecom")
    # Sixteen nodes send what sixteen learners do, each member an eighth of it.
    key = "scalecom,rate=100,beta=0.1"
    together = 8 * sum(call["sent"] for call in rows[key]["bytes_between"].values())
    one = sum(call["sent"] for call in alone[key]["bytes_between"].values())
    assert abs(together / one - 1) < 0.02, (together, one)
    assert rows[key]["bytes_inside"] and not rows["topk,rate=100"]["bytes_inside"]


def test_a_model_of_ones_own(folder):
    layers = [{"name": f"l{i}", "forward_ms": 1, "backward_ms": 2,
               "tensors": [{"name": f"l{i}.weight", "shape": [1000, 1000]}]} for i in range(4)]
    path = folder / "mine.json"
    path.write_text(json.dumps({"name": "mine", "batch": 16, "layers": layers}))
    plan = ("plan", "--model", path, "--workers", 4, "--bandwidth", "1Gbit/s", "--methods", "dense")
    row = planned(*plan)["rows"][0]
    assert row["batch"] == 16 and abs(row["compute_ms"] - 12) < 1e-9, row
    assert abs(planned(*plan, "--batch", 32)["rows"][0]["compute_ms"] - 24) < 1e-9
    expect_refused(run(*plan, "--tflops", 400), "--tflops", "mine.json", "leave --tflops out")
    del layers[2]["backward_ms"]
    path.write_text(json.dumps({"name": "mine", "batch": 16, "layers": layers}))
    expect_refused(run(*plan), "mine.json", "layer 2", "backward_ms")
    path.write_text("{")
    expect_refused(run(*plan), "mine.json")
    expect_refused(run(*changed(model=folder / "none.json")), "none.json")


def test_kernels_of_this_machine(folder):
    path = folder / "kernels.json"
    # Of fewer elements PowerSGD sees no matrix, and takes nothing that can be told from noise.
    expect_ok(run("bench", "reduce", "--elements", 1000000, "--repeats", 3, "--methods",
                  "dense,scalecom,powersgd", "--json", path))
    rows = rows_of(*RESNET, "--kernels", path, "--methods", "scalecom,powersgd,topk")
    assert rows["powersgd,rank=4"]["compress_measured"] and rows["powersgd,rank=4"]["compress_ms"] > 0
    assert not rows["topk,rate=100"]["compress_measured"]
    assert "not measured" in rows["topk,rate=100"]["note"]
    # What was measured of one selection says nothing of another, written or not.
    rows = rows_of(*RESNET, "--kernels", path, "--methods",
                   "scalecom,rate=100,beta=1,scalecom,rate=100,select=exact,powersgd,rank=8")
    assert [row["compress_measured"] for row in rows.values()] == [True, False, False], rows
    measured = json.loads(path.read_text())
    measured["rows"][1]["method"] = "scalecom,rate=100,beta=.10"
    path.write_text(json.dumps(measured))
    assert rows_of(*RESNET, "--kernels", path)["scalecom,rate=100,beta=0.1"]["compress_measured"]
    measured["rows"][1]["method"] = "nope"
    path.write_text(json.dumps(measured))
    expect_refused(run(*RESNET, "--kernels", path), "kernels.json", "nope")
    step = folder / "step.json"
    expect_ok(run("bench", "step", "--elements", 100000, "--repeats", 3, "--json", step))
    assert rows_of(*RESNET, "--kernels", step)["scalecom,rate=100,beta=0.1"]["compress_measured"]
    figures = json.loads(step.read_text())
    step.write_text(json.dumps(figures | {"verified": False}))
    expect_refused(run(*RESNET, "--kernels", step), "step.json", "wrong")
    step.write_text(json.dumps(figures | {"device": "cuda"}))
    other = folder / "other.json"
    other.write_text(json.dumps(figures))
    expect_refused(run(*RESNET, "--kernels", f"{other},{step}"), "step.json", "cuda", "one machine")
    step.write_text("{}")
    expect_refused(run(*RESNET, "--kernels", step), "step.json", "device")
    expect_refused(run(*RESNET, "--kernels", "abacus"), "abacus", "h200")


def measured(*command):
    """Two ranks that time their network; again where the machine is so busy that nothing fits the times,
    which the program says."""
    for _ in range(5):
        done = mpirun((2, PROGRAM, *command))
        if "do not grow with the bytes" not in done.stderr:
            break
    return expect_ok(done)


def test_measuring_a_network(folder):
    expect_refused(run("plan", "--measure"), "two ranks", "mpirun")
    expect_refused(run("plan", "--measure", "--deadline", -1), "--deadline -1")
    # Before anything is measured.
    expect_refused(run(*changed(bandwidth=None), "--measure", "--methods", "nope"), "nope")
    expect_refused(run(*changed(bandwidth=None), "--measure", "--groups", 8, "--inside-bandwidth", "1GB/s",
                       "--sweep", "workers=8..12"), "12 workers", "groups of 8")
    if MPIRUN is None:
        return
    path = folder / "network.json"
    done = measured("plan", "--measure", "--json", path)
    assert "bandwidth" in done.stdout and "latency" in done.stdout, done.stdout
    network = json.loads(path.read_text())["network"]
    assert network["bandwidth"] > 1e6 and network["latency"] >= 0 and network["ranks"] == 2
    row = planned(*changed(bandwidth=None), "--network", path)["rows"][0]
    assert abs(row["bandwidth"] - network["bandwidth"]) < 1
    both = measured(*changed(bandwidth=None), "--measure")
    assert "a hop, ms" in both.stdout and "speed-up" in both.stdout
    job = mpirun((2, PROGRAM, *RESNET, "--measure"))
    expect_job_refused(job, "--bandwidth", "--measure", "give one")
    path.write_text("{}")
    expect_refused(run(*changed(bandwidth=None), "--network", path), "network.json", "network")


def test_a_plan_goes_by_the_hops_that_were_timed(folder):
    path = folder / "network.json"

    def comm_ms(*hops, sweep=()):
        network = {"bandwidth": 1e9, "latency": 0}
        if hops:
            network["hops"] = [{"sent_bytes": sent, "seconds": seconds} for sent, seconds in hops]
        path.write_text(json.dumps({"network": network}))
        rows = planned(*changed(bandwidth=None), "--methods", "dense", "--network", path, *sweep)["rows"]
        return rows[0]["comm_ms"]

    line = comm_ms()
    assert abs(comm_ms((1, 1e-9), (1e6, 1e-3), (1e9, 1)) / line - 1) < 1e-3
    assert abs(comm_ms((1, 2e-9), (1e6, 2e-3), (1e9, 2)) / line - 2) < 1e-3
    # Over a link that is faster they are shorter.
    other = ("--sweep", "bandwidth=2GB/s,4GB/s")
    assert abs(comm_ms((1, 2e-9), (1e6, 2e-3), (1e9, 2), sweep=other) / line - 1) < 1e-3
    # What falls is noise.
    assert comm_ms((1, 2e-9), (1e6, 2e-3), (2e6, 1e-3), (1e9, 2)) > line
    for falling in (((2, 1), (1, 2)), ((1, 1), (1, 1)), ((0, 1),), ((1, 0),)):
        comm = {"network": {"bandwidth": 1, "latency": 0, "hops": [
            {"sent_bytes": sent, "seconds": seconds} for sent, seconds in falling]}}
        path.write_text(json.dumps(comm))
        expect_refused(run(*changed(bandwidth=None), "--network", path), "network.json")


def test_mistakes(folder):
    def refused(*words, more=(), **changes):
        expect_refused(run(*changed(**changes), *more), *words)

    refused("--model", "resnet50", "json", model=None)
    refused("resnet51", "resnet50", model="resnet51")
    refused("--bandwidth", "10Gbit/s", bandwidth=None)
    refused("--bandwidth", "'10'", "10Gbit/s", bandwidth="10")
    refused("--bandwidth", "not over 0", bandwidth="0Gbit/s")
    refused("--bandwidth", "not over 0", bandwidth="-1Gbit/s")
    refused("--latency", "80ms", latency="80")
    refused("--latency", "under 0", more=("--latency=-1ms",))
    refused("--tflops", "--step-ms", tflops=None)
    refused("--tflops 0", tflops=0)
    refused("--tflops -1", more=(), tflops=-1)
    refused("--efficiency 2", efficiency=2)
    refused("--step-ms 0", tflops=None, step_ms=0)
    refused("--tflops and --step-ms", "give one", step_ms=85)
    refused("--efficiency", "--tflops", tflops=None, step_ms=85, efficiency=0.5)
    refused("--step-ms", "--sweep", "--tflops", tflops=None, step_ms=85, sweep="batch=8,16")
    refused("--inside-bandwidth", "--groups", inside_bandwidth="1GB/s")
    refused("--inside-latency", "--groups", inside_latency="1us")
    refused("--device", "--measure", device="cuda")
    refused("--deadline", "--measure", deadline=3)
    refused("0 workers", workers=0)
    refused("batch", "-1", batch=-1)
    refused("batch", "0", batch=0)
    refused("divide", "groups of 7", groups=7, inside_bandwidth="1GB/s")
    refused("--inside-bandwidth", groups=8)
    refused("'0'", bucket="0")
    refused("deviation", deviation=-1)
    refused("star", "ring", collective="star")
    refused("nope", "scalecom", methods="nope")
    for sweep in ("workers", "colour=1..2", "workers=0..8", "workers=a..b", "workers=8..", "bandwidth=1..2",
                  "batch=1.5"):
        refused("--sweep", sweep=sweep)
    refused("workers=8..4 goes down", sweep="workers=8..4")
    refused("--sweep", "goes down", sweep="bandwidth=100Gbit/s..1Gbit/s")
    refused("x.json", "--json", json=folder / "none" / "x.json")


if __name__ == "__main__":
    run_tests(globals())
