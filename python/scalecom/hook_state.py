"""What a registered method shows of itself, under DistributedDataParallel and FSDP2 alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.distributed as dist

from scalecom import _core, groups


class Writer(Protocol):
    """Such as torch.utils.tensorboard.SummaryWriter."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object: ...


class HookState:
    """What a method remembers, and what it has done. How that is saved is for the classes derived from this."""

    def __init__(
        self,
        core: _core.Ddp | _core.Fsdp,
        sizes: dict[str, int],
        group: Any,
        levels: groups.Levels | None,
        can_end_groups: bool,
    ) -> None:
        """`sizes` has the elements of each parameter, or of this rank's shard of it."""
        self._core = core
        self._sizes = sizes
        # Groups live as long as this does.
        self._group = group
        self._levels = levels
        self._owns_groups = can_end_groups  # until close()
        # Of the last load: the steps that this process had done before, and the number that came with it.
        self._steps_before = 0
        self._steps_loaded = 0

    @property
    def method(self) -> str:
        """The method with all its options."""
        return self._core.spec()

    @property
    def steps(self) -> int:
        """Steps done so far."""
        return self._core.steps()

    def configure(self, settings: str) -> None:
        """Other options from now on, between two steps and on every rank: "rate=400,beta=0.3".

        Raises ValueError, and changes nothing, where `register` would have refused them. FLOPs are counted
        only where `register` was given rates="flops" or "paper", so only there can these come back.
        """
        self._core.configure(settings)

    def undo(self) -> None:
        """Takes the last step back, on every rank: for a step whose gradient is not used."""
        self._core.undo()

    def _restore(self, steps: int, memories: dict[str, torch.Tensor]) -> None:
        self._take_up(lambda: self._core.restore(steps, memories))

    def _take_up(self, load: Callable[[], None]) -> None:
        """Bytes are counted on and on, whatever number of steps a load brings."""
        counted = self._counted_steps()
        load()
        self._steps_before, self._steps_loaded = counted, self.steps

    def _counted_steps(self) -> int:
        """Steps whose bytes are counted: those that this process has done."""
        return self._steps_before + self.steps - self._steps_loaded

    def close(self) -> None:
        """Ends the groups of ranks that were made for this state. Every rank calls it after its last
        step: for a process that goes on with another model, as their threads and connections would
        otherwise last as long as the process. Groups of some of the job's ranks alone do so in any
        case."""
        self._core.steps()  # waits for what a failed step may have left under way
        made = [self._group, *([self._levels.inside, self._levels.between] if self._levels else [])]
        for group in made if self._owns_groups else []:
            dist.destroy_process_group(group)
        self._owns_groups = False

    def stats(self) -> dict[str, float]:
        """Bytes that this rank has sent and received since it registered, of which with groups those between
        them count, how many times more dense float32 gradients would have sent in the same steps, and the
        norm of its memory. `steps` has those of before a load in it too."""
        sent, received = self._core.traffic()["between"]
        learners = self._levels.learners if self._levels else dist.get_world_size(self._group)
        members = dist.get_world_size(self._group) // learners
        elements = self._counted_steps() * sum(self._sizes.values())
        dense = 4 * elements * 2 * (learners - 1) / learners / members
        squares = sum(float(m.double().square().sum()) for m in self._feedback().values())
        return {
            "steps": self.steps,
            "bytes_sent": sent,
            "bytes_received": received,
            "bytes_inside": self._core.traffic()["inside"][0],
            "effective_rate": dense / sent if dense and sent else float("nan"),
            "memory_norm": squares**0.5,
        }

    def similarity(self) -> float:
        """The mean cosine of the memories of each two learners: 1 where they point the same way, 0
        where they have nothing to do with one another. Every rank calls it; it sends as much as a
        dense step."""
        learners = self._levels.learners if self._levels else dist.get_world_size(self._group)
        if learners == 1:
            return 1.0
        memories = self._feedback()
        own = torch.cat([memories[n] for n in sorted(memories)]) if memories else torch.zeros(1)
        norm = self._sum_inside(own.square().sum()).sqrt()
        together = own / norm if norm > 0 else own
        dist.all_reduce(together, group=self._levels.between if self._levels else self._group)
        length = float(self._sum_inside(together.double().square().sum()))
        return (length - learners) / (learners * (learners - 1))

    def _sum_inside(self, number: torch.Tensor) -> torch.Tensor:
        if self._levels:
            dist.all_reduce(number, group=self._levels.inside)
        return number

    def _feedback(self) -> dict[str, torch.Tensor]:
        """What is not sent yet, by parameter, without what a method keeps beside it."""
        return {n: m for n, m in self._core.memories().items() if "/" not in n}

    def write(self, writer: Writer, step: int | None = None) -> None:
        """Gives stats() to a TensorBoard SummaryWriter, or to anything that has its add_scalar()."""
        for name, value in self.stats().items():
            writer.add_scalar(f"scalecom/{name}", value, self.steps if step is None else step)
