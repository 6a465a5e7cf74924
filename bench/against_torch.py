"""ScaleCom's local step against the same step in torch operations and against torch.topk.

Runs `scalecom bench step` and the torch versions in turns, in the same minute, on the same device and
number of threads, and prints how many times faster the former is. On a GPU the torch step is also run
under torch.compile, and select=exact is set against torch.topk. First it checks that the torch step
selects and sends what the definition says, so that like is compared with like.

    .venv/bin/python bench/against_torch.py --elements 25600000 --rate 100
    python bench/against_torch.py --program build/cuda/cli/scalecom --device cuda
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

import torch


def torch_step(grad, memory, chunk, beta):
    """The leader's step in torch operations: memory, largest of each chunk, settle, zero, scatter."""
    memory.add_(grad, alpha=beta)
    u = memory.add(grad, alpha=1 - beta)
    picked = u.view(-1, chunk).abs().argmax(dim=1, keepdim=True)
    sent = u.view(-1, chunk).gather(1, picked)
    memory.view(-1, chunk).scatter_add_(1, picked, sent * -beta)
    grad.zero_()
    grad.view(-1, chunk).scatter_(1, picked, sent)
    return picked


def check_torch_step(step, device, chunk, beta):
    """The torch step does what paper and library say, on a case small enough to do by hand."""
    generator = torch.Generator().manual_seed(1)
    grad = torch.randn(50 * chunk, generator=generator)
    before = torch.randn(50 * chunk, generator=generator)
    memory, out = before.to(device, copy=True), grad.to(device, copy=True)
    step(out, memory, chunk, beta)
    memory, out = memory.cpu(), out.cpu()
    for c in range(50):
        u = [before[c * chunk + i].item() + grad[c * chunk + i].item() for i in range(chunk)]
        best = max(range(chunk), key=lambda i: abs(u[i]))
        for i in range(chunk):
            at = c * chunk + i
            sent = u[i] if i == best else 0.0
            assert abs(out[at].item() - sent) < 1e-5, (c, i)
            expected = before[at].item() + beta * (grad[at].item() - sent)
            assert abs(memory[at].item() - expected) < 1e-5, (c, i)


def milliseconds(work, device):
    """How long `work` takes; on a GPU by its own clock, behind what is on the stream already."""
    if device == "cpu":
        begin = time.perf_counter()
        work()
        return (time.perf_counter() - begin) * 1e3
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def program_ms(args, select):
    """The leader's step by `scalecom bench step`, verified there."""
    command = [args.program, "bench", "step", "--elements", str(args.elements), "--rate", str(args.rate),
               "--beta", str(args.beta), "--threads", str(args.threads), "--device", args.device,
               "--select", select, "--repeats", "7" if args.device == "cpu" else "21", "--json", "-"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"against_torch: {done.stderr.strip()}")
    figures = json.loads(done.stdout)
    if not figures["verified"]:
        sys.exit("against_torch: the program's results are not verified")
    return figures["step_ms"]


def measure(args):
    """Medians in milliseconds, by name: ours, and the torch versions."""
    device = args.device
    steps = {"torch_step": torch_step}
    if device != "cpu":
        steps["torch_compile"] = torch.compile(torch_step, fullgraph=True, dynamic=False)
    for step in steps.values():
        check_torch_step(step, device, args.rate, args.beta)
    source = torch.randn(args.elements, device=device)
    grad, memory = source.clone(), torch.zeros(args.elements, device=device)
    keep = args.elements // args.rate
    times = {name: [] for name in ("scalecom", "torch_topk", *steps)}
    if device != "cpu":
        times["exact"] = []
        for step in steps.values():
            step(grad, memory, args.rate, args.beta)  # compiled for this size before it is timed
    for _ in range(args.rounds):
        times["scalecom"].append(program_ms(args, "chunk"))
        if "exact" in times:
            times["exact"].append(program_ms(args, "exact"))
        for _ in range(3 if device == "cpu" else 10):
            for name, step in steps.items():
                grad.copy_(source)
                times[name].append(
                    milliseconds(lambda s=step: s(grad, memory, args.rate, args.beta), device))
        for _ in range(1 if device == "cpu" else 10):
            magnitude = source.abs()
            times["torch_topk"].append(
                milliseconds(lambda m=magnitude: torch.topk(m, keep, sorted=False), device))
    return {name: statistics.median(values) for name, values in times.items()}


def print_table(args, result):
    print(f"{args.elements} elements at {args.rate}X on {args.device}, torch {torch.__version__}")
    print(f"{'':26}{'ms':>10}{'ours is faster by':>20}")
    print(f"{'scalecom, whole step':26}{result['scalecom_ms']:10.3f}")
    names = {"torch_step": "torch, same step", "torch_compile": "the same, torch.compile",
             "torch_topk": "torch.topk alone"}
    for key, name in names.items():
        if key + "_ms" in result:
            print(f"{name:26}{result[key + '_ms']:10.3f}{result['times_' + key]:19.1f}x")
    if "exact_ms" in result:
        print(f"{'scalecom, select=exact':26}{result['exact_ms']:10.3f}"
              f"{result['exact_times_torch_topk']:19.1f}x than torch.topk")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="build/release/cli/scalecom", help="the scalecom program")
    parser.add_argument("--elements", type=int, default=25_600_000)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--beta", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=3, help="turns that each version takes")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here; - for stdout")
    args = parser.parse_args()
    if args.elements % args.rate:
        parser.error("--elements must be a multiple of --rate: torch's view() has no tail")
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: this torch sees no CUDA device")

    torch.set_num_threads(args.threads)
    times = measure(args)
    result = {"device": args.device, "elements": args.elements, "rate": args.rate,
              "threads": args.threads, "torch": torch.__version__}
    result.update({name + "_ms": value for name, value in times.items()})
    for name in times.keys() - {"scalecom", "exact"}:
        result["times_" + name] = times[name] / times["scalecom"]
    if "exact" in times:
        result["exact_times_torch_topk"] = times["torch_topk"] / times["exact"]
    if args.json == "-":
        print(json.dumps(result, indent=2))
        return
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    print_table(args, result)


if __name__ == "__main__":
    main()
