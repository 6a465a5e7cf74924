"""PowerSGD's step against PyTorch's powerSGD_hook, in DistributedDataParallel on the CPU.

A world of one, so that nothing but the compression is measured: memory, both products, making
orthonormal, the approximation, the error. The model is ResNet-50's parameters with a backward pass
that only copies. Ours, PyTorch's and DDP without a hook take turns in the same process; what the last
one takes is taken off. First it is checked that both hooks give the same gradient from the same start.

    .venv/bin/python bench/powersgd_against_torch.py --rank 4 --threads 2
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

DENSE_STEPS = 2  # the hook's least


def resnet50_shapes():
    """Every parameter of ResNet-50, 25.6M elements."""
    shapes = [(64, 3, 7, 7), (64,), (64,)]
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            for shape in ((width, inputs, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)):
                shapes += [shape, (shape[0],), (shape[0],)]
            if block == 0:
                shapes += [(4 * width, inputs, 1, 1), (4 * width,), (4 * width,)]
            inputs = 4 * width
    return shapes + [(1000, 2048), (1000,)]


class Copies(nn.Module):
    """Parameters whose gradients are given."""

    def __init__(self, shapes):
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(shape)) for shape in shapes)
        generator = torch.Generator().manual_seed(1)
        self.gradients = [torch.randn(shape, generator=generator) for shape in shapes]

    def forward(self):
        return sum((w * g).sum() for w, g in zip(self.weights, self.gradients, strict=True))


def backward_ms(ddp):
    ddp.zero_grad(set_to_none=False)
    loss = ddp()
    begin = time.perf_counter()
    loss.backward()
    return (time.perf_counter() - begin) * 1e3


def flat_gradient(ddp):
    return torch.cat([p.grad.flatten() for p in ddp.module.parameters()])


def make_modules(shapes, rank):
    """DDP without a hook, with PyTorch's and with ours."""
    import scalecom

    # One bucket: with several on gloo, PyTorch's hook can wait for itself forever, as it waits for a
    # reduction in the few threads that carry reductions out.
    wrap = {"bucket_cap_mb": 1000, "gradient_as_bucket_view": True}
    modules = {name: DistributedDataParallel(Copies(shapes), **wrap)
               for name in ("none", "torch", "scalecom")}
    hook_state = PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=DENSE_STEPS)
    modules["torch"].register_comm_hook(hook_state, powerSGD_hook)
    scalecom.register(modules["scalecom"], f"powersgd,rank={rank},warmup={DENSE_STEPS}")
    return modules


def check(shapes, rank):
    """A gradient that has this rank comes out of both hooks as it went in."""
    modules = make_modules(shapes, rank)
    generator = torch.Generator().manual_seed(2)
    for ddp in modules.values():
        generator.manual_seed(2)
        for i, shape in enumerate(shapes):
            rows = shape[0]
            left = torch.randn(rows, rank, generator=generator)
            right = torch.randn(rank, ddp.module.gradients[i].numel() // rows, generator=generator)
            ddp.module.gradients[i] = (left @ right).view(shape)
    for name, ddp in modules.items():
        for _ in range(DENSE_STEPS + 1):
            backward_ms(ddp)
        if name != "none":
            off = (flat_gradient(ddp) - flat_gradient(modules["none"])).norm()
            assert off < 1e-3 * flat_gradient(modules["none"]).norm(), (name, float(off))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9, help="turns that each version takes")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    os.environ["SCALECOM_THREADS"] = str(args.threads)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    shapes = resnet50_shapes()
    check([(64, 80), (64,), (100, 8, 3, 3)], args.rank)
    modules = make_modules(shapes, args.rank)
    times = {name: [] for name in modules}
    for turn in range(args.rounds + DENSE_STEPS + 2):
        for name, ddp in modules.items():
            elapsed = backward_ms(ddp)
            if turn >= DENSE_STEPS + 2:
                times[name].append(elapsed)
    dist.destroy_process_group()

    median = {name: statistics.median(values) for name, values in times.items()}
    own = {name: median[name] - median["none"] for name in ("torch", "scalecom")}
    result = {"elements": sum(g.numel() for g in modules["none"].module.gradients), "rank": args.rank,
              "threads": args.threads, "torch": torch.__version__,
              "none_ms": median["none"], "torch_ms": median["torch"], "scalecom_ms": median["scalecom"],
              "times_torch": own["torch"] / own["scalecom"]}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    print(f"{result['elements']} elements at rank {args.rank}, {args.threads} threads, torch {torch.__version__}")
    print(f"{'backward pass, no hook':28}{median['none']:10.1f} ms")
    for name, label in (("torch", "with PyTorch's powerSGD_hook"), ("scalecom", "with ours")):
        print(f"{label:28}{median[name]:10.1f} ms, the hook {own[name]:.1f} ms")
    print(f"ours is faster by {result['times_torch']:.2f}x")


if __name__ == "__main__":
    main()
