"""ScaleCom in stock DistributedDataParallel."""

from __future__ import annotations

import logging
from datetime import timedelta
from os import PathLike, fspath
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from scalecom import _core, groups, saved
from scalecom.flops import count_on_first_forward
from scalecom.hook_state import HookState
from scalecom.profile import Profile

_log = logging.getLogger("scalecom")


def register(
    ddp: DistributedDataParallel,
    method: str = "scalecom",
    *,
    rates: str | None = None,
    scaler: torch.amp.GradScaler | None = None,
    deadline: timedelta = timedelta(minutes=30),
) -> State:
    """Makes `method` the way in which `ddp` takes the mean of its gradients.

    Args:
        ddp: A DistributedDataParallel module that has no communication hook yet.
        method: A method and its options, such as "scalecom,rate=100,beta=0.1,warmup=500", "dense" or
            "half,values=bf16". `scalecom.methods()` lists the methods, `scalecom.options(name)` what
            each understands. With "groups=node" or "groups=8", ranks of a host, or 8 in a row, take
            their mean densely, and the method works between these groups.
        rates: How tensors get their rates: "uniform", "flops" (measured in the first step), "paper",
            or patterns of parameter names, "fc*:400;conv?.weight:25;embed*:dense". The same as the
            option `rates` of the method.
        scaler: The GradScaler that the loss goes through, and no other model's with an optimizer of its
            own. The memory follows its scale, and a step that it skips is taken back.
        deadline: The longest that a step waits for the other ranks.

    Returns:
        The state, to be saved with the model: it holds what was not sent yet.

    Every rank calls this with the same arguments. It is one call for a module's life.
    """
    if not isinstance(ddp, DistributedDataParallel):
        raise TypeError(
            f"scalecom.register takes a DistributedDataParallel module, not a {type(ddp).__name__}: "
            "wrap the model in torch.nn.parallel.DistributedDataParallel first"
        )
    spec = method if rates is None else f"{method},rates={rates}"
    names, parameters = _trained_parameters(ddp)
    if any(p.is_cuda for p in parameters) and not _core.has_cuda():
        raise ValueError(
            "the model is on a GPU, and this scalecom was built without CUDA: it takes models on the CPU"
        )
    _check_no_hook(ddp)
    _check_same_parameters(ddp, parameters)
    with groups.ended_on_error(ddp.process_group) as made:
        group = groups.same_ranks(ddp.process_group, deadline)
        made.append(group)
        levels = groups.divide(group, spec, deadline)
        if levels:
            made += [levels.inside, levels.between]
        core = _core.Ddp(
            spec, names, parameters, group, deadline.total_seconds(), levels.parts if levels else []
        )
        if scaler is not None and scaler.is_enabled():
            core.follow_scale(_scale_of(scaler, parameters))
        # Which cannot be taken back. A static graph uses what it uses in every step.
        core.register(ddp.reducer, ddp.find_unused_parameters and not ddp.static_graph)
    if core.wants_flops():
        count_on_first_forward(ddp.module, names, core.set_flops)
    can_end = groups.can_end_groups_of(ddp.process_group)
    state = State(core, names, parameters, group, levels, can_end, ddp.module)
    state._announce()
    return state


class State(HookState):
    """What a method remembers, and what it has done. Made by `register`."""

    def __init__(
        self,
        core: _core.Ddp,
        names: list[str],
        parameters: list[torch.Tensor],
        group: Any,
        levels: groups.Levels | None,
        can_end_groups: bool,
        model: torch.nn.Module,
    ) -> None:
        sizes = {n: p.numel() for n, p in zip(names, parameters, strict=True)}
        super().__init__(core, sizes, group, levels, can_end_groups)
        self._names = names
        self._model = model

    def state_dict(self) -> dict[str, Any]:
        """This rank's memories, for torch.save or torch.distributed.checkpoint.

        Memories differ from rank to rank, so their keys begin with the rank's number; keep those of
        all ranks. With groups, a rank's are its parts of its group's memory. Before the first step there
        are none, and so no room for dcp.load to fill.
        """
        rank, world = self._group.rank(), self._group.size()  # which it knows after close() too
        state: dict[str, Any] = {"method": self.method, "steps": self.steps, "world": world}
        state["learners"] = self._levels.learners if self._levels else world
        state[f"learner_of_rank{rank}"] = self._levels.learner if self._levels else rank
        memories = self._core.memories()
        state[f"memories_of_rank{rank}"] = len(memories)
        for name, memory in memories.items():
            state[f"rank{rank}.{name}"] = memory
        return state

    def load_state_dict(self, *states: dict[str, Any]) -> None:
        """Takes back what state_dict() gave: this rank's own, or, where the number of ranks is
        another one, those of all former ranks. Then every rank gets the mean of their memories,
        which keeps what is still to be sent. With groups, those of all ranks are needed too where
        configure() had changed the rates: parts of memories are cut by those of the first step.

        Raises ValueError, and changes nothing, where a memory is missing, or not this model's, or where
        the method was another one, but for its groups: change options afterwards, by configure(), which
        keeps what is still to be sent.
        """
        merged = saved.merge(states)
        former = str(merged["method"])
        if _core.without_groups(former) != _core.without_groups(self.method):
            raise ValueError(
                f"the state was saved by '{former}', and this is '{self.method}'; load it into the former, "
                "then configure() it"
            )
        if self._same_ranks(merged):
            memories = self._own_memories(merged)
        else:
            learners: dict[int, list[int]] = {}
            for rank in range(int(merged["world"])):
                learners.setdefault(int(merged.get(f"learner_of_rank{rank}", rank)), []).append(rank)
            memories = saved.mean(
                [saved.join(self._memories_of(merged, ranks), self._sizes) for ranks in learners.values()]
            )
        self._restore(int(merged["steps"]), memories)

    def _same_ranks(self, merged: dict[str, Any]) -> bool:
        """Whether each rank can take its own back: as many ranks, divided alike. Ranks that are given the
        same states are of one mind."""
        world = dist.get_world_size(self._group)
        learner_of = self._levels.learner_of if self._levels else list(range(world))
        return (
            int(merged["world"]) == world
            and int(merged.get("learners", world)) == len(set(learner_of))
            and all(int(merged.get(f"learner_of_rank{r}", one)) == one for r, one in enumerate(learner_of))
        )

    def _own_memories(self, merged: dict[str, Any]) -> dict[str, torch.Tensor]:
        """Where the ranks are the same. Those of the whole learner, if all its ranks gave theirs: after other
        rates had come by configure(), its parts are not cut as they are to be from now on."""
        if self._levels:
            whole = [r for r, one in enumerate(self._levels.learner_of) if one == self._levels.learner]
            if all(f"learner_of_rank{r}" in merged for r in whole):
                return saved.join(self._memories_of(merged, whole), self._sizes)
        return self._memories_of(merged, [dist.get_rank(self._group)])

    def _memories_of(self, merged: dict[str, Any], ranks: list[int]) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        for rank in ranks:
            prefix = f"rank{rank}."
            own = {k.removeprefix(prefix): v for k, v in merged.items() if k.startswith(prefix)}
            # With groups a rank may have no part of any memory; what it gave names its learner all the same.
            given = own or f"learner_of_rank{rank}" in merged
            # dcp.load fills what it was given room for, and leaves out the rest without a word.
            lacks = len(own) < int(merged.get(f"memories_of_rank{rank}", 0))
            if lacks or not given and int(merged["steps"]) > 0 and _may_have_memories(merged):
                raise ValueError(
                    f"the memories of rank {rank} are missing: error feedback would be lost; give the "
                    f"states of all {merged['world']} ranks, and dcp.load room for their memories"
                )
            found.update(own)
        for key, memory in found.items():
            name, first, end = saved.part(key, memory)
            # A method may remember more of a parameter than one memory: "NAME/velocity".
            tensor = name if name in self._sizes else name.rpartition("/")[0] or name
            if tensor not in self._sizes:
                raise ValueError(f"the state has a memory of '{tensor}', which this model has not")
            size = self._sizes[tensor]
            if tensor == name and (end > size or (key == name and end != size)):
                raise ValueError(
                    f"parameter '{name}' has {size} elements and its memory "
                    f"{end}: this is the state of another model"
                )
            if memory.numel() != end - first:
                raise ValueError(f"'{key}' has {memory.numel()} elements: that is no memory of this part")
        return found

    def save(self, folder: str | PathLike[str]) -> None:
        """Writes the memories of all ranks into a folder, as safetensors files; every rank calls it."""
        self._core.save(fspath(folder))

    def load(self, folder: str | PathLike[str]) -> None:
        """Reads such a folder, of any number of ranks; every rank calls it. Raises ValueError as
        load_state_dict(): where one rank does, all do, and nothing has changed."""
        self._take_up(lambda: self._core.load(fspath(folder)))

    def profile(self, path: str | PathLike[str], *, batch: int) -> Profile:
        """Measures the model's layers in the steps that are taken inside it, three or more:

            with state.profile("model.json", batch=32):
                for inputs, labels in itertools.islice(loader, 10):
                    train_step(inputs, labels)

        Rank 0 then writes a file that `scalecom plan --model model.json` reads. `batch` is the number of
        samples of a rank's step. What goes on at the same time, such as reductions on the CPU, is in the
        times.
        """
        return Profile(self._model, self._names, path, batch, dist.get_rank(self._group) == 0)

    def _announce(self) -> None:
        if dist.get_rank(self._group) != 0:
            return
        if self._core.wants_flops():
            _log.info("%s: rates follow from the FLOPs of the first step", self.method)
            return
        sizes = list(self._sizes.values())
        # A method without a rate goes by shapes, if it compresses at all.
        if ",rate=" not in self.method:
            _log.info("%s: %d parameters, %d elements", self.method, len(sizes), sum(sizes))
            return
        rates = self._core.rates()
        packed = [(s, r) for s, r in zip(sizes, rates, strict=True) if r > 1]
        elements = sum(s for s, _ in packed)
        _log.info(
            "%s: %d of %d parameters compressed, %.1f%% of %d elements; %d elements travel dense",
            self.method, len(packed), len(sizes), 100 * elements / max(1, sum(sizes)), sum(sizes),
            sum(sizes) - elements,
        )


def _may_have_memories(merged: dict[str, Any]) -> bool:
    """Whether others than the given ranks may have some. A method without any gives none at any rank; but
    with groups, so does a rank that has no part."""
    divided = int(merged.get("learners", merged["world"])) != int(merged["world"])
    return divided or any(k.startswith("rank") for k in merged)


def _trained_parameters(ddp: DistributedDataParallel) -> tuple[list[str], list[torch.Tensor]]:
    """Those that DDP reduces, by the first name that is not ignored."""
    ignored = getattr(ddp, "parameters_to_ignore", set())
    names: dict[torch.Tensor, str] = {}
    for name, p in ddp.module.named_parameters(remove_duplicate=False):
        # To DDP a parameter of the module itself is ".weight".
        if p.requires_grad and (name if "." in name else f".{name}") not in ignored:
            names.setdefault(p, name)
    return list(names.values()), list(names)


def _scale_of(scaler: torch.amp.GradScaler, parameters: list[torch.Tensor]) -> torch.Tensor:
    """The tensor that the scaler changes in place, which it makes when it is first used."""
    if scaler._scale is None:
        scaler._lazy_init_scale_growth_tracker(parameters[0].device)
    return scaler._scale


def _check_same_parameters(ddp: DistributedDataParallel, parameters: list[torch.Tensor]) -> None:
    """ValueError where DDP can tell that it reduces others."""
    used = ddp.reducer._get_local_used_map() if ddp.find_unused_parameters else None
    if used is not None and used.numel() != len(parameters):
        raise ValueError(
            f"this DistributedDataParallel reduces the gradients of {used.numel()} parameters, and "
            f"{len(parameters)} are trained now: freeze and thaw parameters before it is made"
        )


def _check_no_hook(ddp: DistributedDataParallel) -> None:
    if getattr(ddp, "mixed_precision", None) is not None:
        raise ValueError(
            "DistributedDataParallel(mixed_precision=...) takes its mean by a hook of its own, and "
            "torch allows one: use torch.autocast, or a model in bfloat16, instead"
        )
    if getattr(ddp, "_use_python_reducer", False):
        raise ValueError(
            'torch._dynamo.config.optimize_ddp is "python_reducer", with which DistributedDataParallel takes '
            "its mean without the hook that scalecom is: make the module under another setting"
        )
    if getattr(ddp, "_comm_hooks", None):
        raise ValueError(
            "this DistributedDataParallel has a communication hook already; it takes one in its life"
        )
