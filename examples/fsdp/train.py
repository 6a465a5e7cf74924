"""Trains a small GPT with FSDP2 inside the node and ScaleCom between nodes.

    torchrun --nproc-per-node 4 examples/fsdp/train.py --shards 2 --out runs/fsdp

has four ranks as two nodes of two. The same command goes on from the last checkpoint in --out, with
another number of nodes or another --shards too.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
from pathlib import Path

import scalecom
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from model import Gpt
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

LENGTH = 128


class Text:
    """Pieces of a text, drawn by (rank, step) alone, so that a resumed run goes on where it was."""

    def __init__(self, files: list[Path]) -> None:
        text = b"".join(file.read_bytes() for file in files)
        self._bytes = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()

    def batch(self, rank: int, step: int, pieces: int) -> tuple[torch.Tensor, torch.Tensor]:
        random = torch.Generator().manual_seed(1_000_003 * step + rank)
        begins = torch.randint(len(self._bytes) - LENGTH - 1, (pieces,), generator=random)
        rows = torch.stack([self._bytes[b : b + LENGTH + 1] for b in begins.tolist()])
        return rows[:, :-1], rows[:, 1:]


class Checkpoints:
    """Folders named by their step; the last complete one counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def last(self) -> int:
        """0 where there is none."""
        return max((int(f.name) for f in self._folder.glob("*") if f.name.isdecimal()), default=0)

    def save(
        self, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, state: scalecom.FsdpState
    ) -> None:
        weights, moments = get_state_dict(model, optimizer)
        partial, former = self._folder / f"{step}.partial", self.last()
        dcp.save(
            {"model": weights, "optimizer": moments, "scalecom": state.state_dict()}, checkpoint_id=partial
        )
        if dist.get_rank() == 0:
            partial.rename(self._folder / str(step))
            if former:
                shutil.rmtree(self._folder / str(former))
        dist.barrier()

    def load(self, model: nn.Module, optimizer: torch.optim.Optimizer, state: scalecom.FsdpState) -> int:
        """Takes the last one up and returns its step."""
        step = self.last()
        if step == 0:
            return 0
        folder = self._folder / str(step)
        weights, moments = get_state_dict(model, optimizer)
        dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        state.load_checkpoint(folder)  # of any number of nodes
        return step


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--shards", type=int, default=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
                        help="ranks of a node, which share the model; all that torchrun starts here")
    parser.add_argument("--method", default="scalecom,rate=100,beta=0.1,warmup=20,first=compressed")
    parser.add_argument("--text", type=Path, nargs="+", default=sorted(Path(__file__).parent.glob("*.py")),
                        help="what to learn: by default, these programs")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8, help="pieces of text a rank")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--compile", action="store_true", help="compile the blocks")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--checkpoint-every", type=int, default=100)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if world % args.shards:
        raise SystemExit(f"{world} ranks do not divide into nodes of {args.shards}")
    device = torch.device("cuda" if cuda else "cpu")
    mesh = init_device_mesh(device.type, (world // args.shards, args.shards), mesh_dim_names=("node", "shard"))

    torch.manual_seed(0)
    model = Gpt(args.width, args.blocks, length=LENGTH).to(device)
    precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16) if cuda else MixedPrecisionPolicy()
    for block in model.blocks:
        if args.compile:
            block.compile()
        fully_shard(block, mesh=mesh["shard"], mp_policy=precision)
    fully_shard(model, mesh=mesh["shard"], mp_policy=precision)
    state = scalecom.register_fsdp(model, args.method, between=mesh["node"].get_group())  # the line

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text, checkpoints = Text(args.text), Checkpoints(args.out)
    first = checkpoints.load(model, optimizer, state)
    if first and rank == 0:
        print(f"going on after step {first}")
    for step in range(first, args.steps):
        inputs, following = (t.to(device) for t in text.batch(rank, step, args.batch))
        loss = nn.functional.cross_entropy(model(inputs).float().flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % args.checkpoint_every == 0 or step + 1 == args.steps:
            if rank == 0:
                print(f"step {step + 1}: loss {loss.item():.3f}")
            checkpoints.save(step + 1, model, optimizer, state)
    if rank == 0:
        print(f"between nodes each rank sent {state.stats()['bytes_sent'] / 1e6:.2f} MB")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
