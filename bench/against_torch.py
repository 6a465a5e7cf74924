"""ScaleCom's local step against the same step in torch operations and against torch.topk.

Runs `scalecom bench step` and the torch versions in turns, in the same minute and on the same number
of threads, and prints how many times faster the former is. First it checks that the torch step
selects and sends what the definition says, so that like is compared with like.

    .venv/bin/python bench/against_torch.py --elements 25600000 --rate 100
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


def check_torch_step(chunk, beta):
    """The torch step does what paper and library say, on a case small enough to do by hand."""
    generator = torch.Generator().manual_seed(1)
    grad = torch.randn(50 * chunk, generator=generator)
    before = torch.randn(50 * chunk, generator=generator)
    memory, out = before.clone(), grad.clone()
    torch_step(out, memory, chunk, beta)
    for c in range(50):
        u = [before[c * chunk + i].item() + grad[c * chunk + i].item() for i in range(chunk)]
        best = max(range(chunk), key=lambda i: abs(u[i]))
        for i in range(chunk):
            at = c * chunk + i
            sent = u[i] if i == best else 0.0
            assert abs(out[at].item() - sent) < 1e-5, (c, i)
            expected = before[at].item() + beta * (grad[at].item() - sent)
            assert abs(memory[at].item() - expected) < 1e-5, (c, i)


def milliseconds(work):
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="build/release/cli/scalecom", help="the scalecom program")
    parser.add_argument("--elements", type=int, default=25_600_000)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--beta", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="turns that each version takes")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here; - for stdout")
    args = parser.parse_args()
    if args.elements % args.rate:
        parser.error("--elements must be a multiple of --rate: torch's view() has no tail")

    torch.set_num_threads(args.threads)
    check_torch_step(args.rate, args.beta)
    source = torch.randn(args.elements)
    grad, memory = source.clone(), torch.zeros(args.elements)
    keep = args.elements // args.rate
    ours, steps, topks = [], [], []
    for _ in range(args.rounds):
        figures = json.loads(subprocess.run(
            [args.program, "bench", "step", "--elements", str(args.elements), "--rate", str(args.rate),
             "--beta", str(args.beta), "--threads", str(args.threads), "--repeats", "7", "--json", "-"],
            check=True, capture_output=True, text=True).stdout)
        if not figures["verified"]:
            sys.exit("against_torch: the program's results are not verified")
        ours.append(figures["step_ms"])
        for _ in range(3):
            grad.copy_(source)
            steps.append(milliseconds(lambda: torch_step(grad, memory, args.rate, args.beta)))
        topks.append(milliseconds(lambda: torch.topk(source.abs(), keep, sorted=False)))

    result = {
        "elements": args.elements,
        "rate": args.rate,
        "threads": args.threads,
        "torch": torch.__version__,
        "scalecom_ms": statistics.median(ours),
        "torch_step_ms": statistics.median(steps),
        "torch_topk_ms": statistics.median(topks),
    }
    result["times_torch_step"] = result["torch_step_ms"] / result["scalecom_ms"]
    result["times_torch_topk"] = result["torch_topk_ms"] / result["scalecom_ms"]
    if args.json == "-":
        print(json.dumps(result, indent=2))
        return
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    print(f"{args.elements} elements at {args.rate}X, {args.threads} threads, torch {torch.__version__}")
    print(f"{'':22}{'ms':>10}{'ours is faster by':>20}")
    print(f"{'scalecom, whole step':22}{result['scalecom_ms']:10.1f}")
    for name, key in (("torch, same step", "torch_step"), ("torch.topk alone", "torch_topk")):
        print(f"{name:22}{result[key + '_ms']:10.1f}{result['times_' + key]:19.1f}x")


if __name__ == "__main__":
    main()
