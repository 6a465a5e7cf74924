"""The method `topk` against torch.topk and a scatter, as hooks of the same DDP module.

A module of one parameter, in a world of one rank, whose gradient is what it is fed: a step is a copy of
it and the hook. The hooks take turns, and each hook's own time is its step less that of a hook that does
nothing, in the same turn; medians over turns are compared. First both must send the same entries.

    .venv/bin/python bench/topk_against_torch.py --elements 25600000 --rate 100
"""

import argparse
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import scalecom


class Slope(torch.nn.Module):
    """A model whose gradient is whatever is fed to it."""

    def __init__(self, elements):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(elements // 64, 64))

    def forward(self, slope):
        return (self.weight * slope).sum()


class TorchTopk:
    """Top-K with error feedback in torch operations: a communication hook in a world of one."""

    def __init__(self, elements, rate):
        self.memory = torch.zeros(elements)
        self.keep = elements // rate

    def __call__(self, _, bucket):
        grad = bucket.buffer()
        self.memory.add_(grad)
        picked = torch.topk(self.memory.abs(), self.keep, sorted=False).indices
        sent = self.memory[picked]
        self.memory[picked] = 0
        grad.zero_().scatter_(0, picked, sent)
        return _done(grad)


def _nothing(_, bucket):
    return _done(bucket.buffer())


def _done(tensor):
    future = torch.futures.Future()
    future.set_result(tensor)
    return future


def hook_of(function):
    """torch looks at a hook's annotations and parameter names; a lambda has neither to get wrong."""
    return lambda state, bucket: function(state, bucket)


def modules(args):
    """The same module three times: with our hook, with torch's operations, with nothing to do."""
    made = {name: DistributedDataParallel(Slope(args.elements), bucket_cap_mb=1 << 20,
                                          gradient_as_bucket_view=True)
            for name in ("topk", "torch", "nothing")}
    scalecom.register(made["topk"], f"topk,rate={args.rate},first=compressed")
    made["torch"].register_comm_hook(None, hook_of(TorchTopk(args.elements, args.rate)))
    made["nothing"].register_comm_hook(None, hook_of(_nothing))
    return made


def step_ms(module, slope):
    module.zero_grad()
    loss = module(slope)
    begin = time.perf_counter()
    loss.backward()
    return (time.perf_counter() - begin) * 1e3


def check_same(made):
    """The same magnitudes: among equal ones the two may choose differently."""
    ours, theirs = (made[name].module.weight.grad.abs().flatten() for name in ("topk", "torch"))
    if not torch.equal(ours[ours > 0].sort().values, theirs[theirs > 0].sort().values):
        raise SystemExit("topk_against_torch: the two do not send the same")


def measure(args):
    """Each hook's own milliseconds in every round, and those of a step whose hook does nothing."""
    made = modules(args)
    slope = torch.randn(args.elements // 64, 64)
    for warm_up in range(3):  # in the first of which DDP arranges its buckets
        for module in made.values():
            step_ms(module, slope)
        if warm_up == 0:
            check_same(made)
        slope = torch.randn(args.elements // 64, 64)
    times = {name: [] for name in made}
    for _ in range(args.rounds):
        turn = {name: step_ms(module, slope) for name, module in made.items()}
        for name, value in turn.items():
            times[name].append(value - turn["nothing"] if name != "nothing" else value)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--elements", type=int, default=25_600_000)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", metavar="FILE", help="also write the figures here; - for stdout")
    args = parser.parse_args()
    if args.elements % 64:
        parser.error("--elements must be a multiple of 64")
    os.environ.setdefault("SCALECOM_THREADS", str(args.threads))
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=0, world_size=1)
        times = {name: statistics.median(values) for name, values in measure(args).items()}
        dist.destroy_process_group()
    result = {"elements": args.elements, "rate": args.rate, "threads": args.threads,
              "torch": torch.__version__, "topk_ms": times["topk"], "torch_topk_ms": times["torch"],
              "step_without_ms": times["nothing"], "times_faster": times["torch"] / times["topk"]}
    if args.json == "-":
        print(json.dumps(result, indent=2))
        return
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    print(f"{args.elements} elements at {args.rate}X, {args.threads} threads, torch {torch.__version__}")
    print(f"{'topk':28}{times['topk']:10.2f} ms")
    print(f"{'torch.topk and scatter':28}{times['torch']:10.2f} ms")
    print(f"{'a step without either':28}{times['nothing']:10.2f} ms")
    print(f"ours is faster by {result['times_faster']:.1f}x")


if __name__ == "__main__":
    main()
