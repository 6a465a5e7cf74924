"""What FSDP2 has made of a model: which elements of which parameters are this rank's."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

# What torch.compile and activation checkpointing put into names: a resumed run may do without them.
_WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.")


class Shards:
    """The trained parameters of a model given to fully_shard, in the model's order.

    ValueError, or TypeError, where it is not, or not in a way that leaves the mean over nodes to others.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = getattr(model, "_orig_mod", model)
        if not isinstance(self.model, FSDPModule):
            raise TypeError(
                f"scalecom.register_fsdp takes a model that fully_shard was applied to, not a "
                f"{type(self.model).__name__}: call torch.distributed.fsdp.fully_shard(model, mesh=...) first"
            )
        # Modules that FSDP2 treats as one have one group between them.
        modules = [m for m in self.model.modules() if isinstance(m, FSDPModule)]
        groups = {id(group): (module, group) for module in modules for group in _groups(module)}
        self.modules: list[FSDPModule] = []
        self.names: list[str] = []
        self.paths: list[str] = []  # names as the model has them
        self.shapes: list[list[int]] = []
        self.places: list[tuple[int, int, int]] = []  # first element, length, length with padding
        self.members: list[list[int]] = []  # by module, its parameters as FSDP2 brings them
        self._tensors: list[DTensor] = []

        self.group: dist.ProcessGroup = _shard_group([g for _, g in groups.values()])
        self.rank, self.size = dist.get_rank(self.group), dist.get_world_size(self.group)
        numbers = self._take([p for _, g in groups.values() for p in g.fsdp_params])
        for module, group in groups.values():
            members = [numbers[id(p)] for p in group.fsdp_params if id(p) in numbers]
            if members:
                self.modules.append(module)
                self.members.append(members)
        if not self.names:
            raise ValueError("the model has no parameter that is trained")
        self.device: torch.device = next(iter(groups.values()))[1].device

    def _take(self, parameters: list[Any]) -> dict[int, int]:
        """Lists those that are trained; returns their numbers."""
        by_place = {(id(p._module_info.module), p._module_info.param_name): p for p in parameters}
        numbers: dict[int, int] = {}
        for path, module in self.model.named_modules():
            for name in module._parameters:
                one = by_place.get((id(module), name))
                if one is None or not one.sharded_param.requires_grad:
                    continue
                numbers[id(one)] = len(self.names)
                self._add(f"{path}.{name}" if path else name, one)
        return numbers

    def _add(self, path: str, parameter: Any) -> None:
        name = path
        for wrapper in _WRAPPERS:
            name = name.replace(wrapper, "")
        if parameter.fsdp_placement.dim != 0:
            raise ValueError(
                f"parameter '{name}' is sharded along dimension {parameter.fsdp_placement.dim}: scalecom "
                "takes shards of the first dimension"
            )
        if parameter.is_dtensor:
            raise ValueError(
                f"parameter '{name}' was a DTensor before fully_shard, as under tensor parallelism, which "
                "scalecom does not know"
            )
        shape = list(parameter._orig_size)
        rows = parameter.padded_sharded_param_size[0]
        row = torch.Size(shape[1:]).numel()
        self.names.append(name)
        self.paths.append(path)
        self.shapes.append(shape)
        self.places.append(
            (min(self.rank * rows, shape[0]) * row, parameter.sharded_size.numel(), rows * row)
        )
        self._tensors.append(parameter.sharded_param)

    def summary(self) -> str:
        """What has to be the same on every rank."""
        digest = hashlib.sha256(repr((self.names, self.shapes, self.members)).encode()).hexdigest()
        elements = sum(torch.Size(shape).numel() for shape in self.shapes)
        return (
            f"{elements} elements in {len(self.names)} parameters and {len(self.members)} modules "
            f"({digest[:8]})"
        )

    def key(self, index: int) -> str:
        """What the library calls this rank's part of a parameter."""
        first, length, _ = self.places[index]
        whole = length == torch.Size(self.shapes[index]).numel()
        return self.names[index] if whole else f"{self.names[index]}[{first}:{first + length}]"

    def distributed(self, index: int, own: torch.Tensor | None = None) -> DTensor:
        """Of a parameter's shape, shared among the node's ranks as it is; zeros where none are given."""
        shape, length = self.shapes[index], self.places[index][1]
        own = torch.zeros(length) if own is None else own
        rows = length // max(1, torch.Size(shape[1:]).numel())
        like = self._tensors[index]
        return DTensor.from_local(
            own.view(rows, *shape[1:]), like.device_mesh, like.placements, run_check=False,
            shape=torch.Size(shape), stride=like.stride(),
        )

    def check_shape(self, index: int, shape: torch.Size) -> None:
        """ValueError where it is not the parameter's."""
        if list(shape) != self.shapes[index]:
            raise ValueError(
                f"parameter '{self.names[index]}' is {self.shapes[index]} and its memory {list(shape)}: "
                "this is the state of another model"
            )

    def local(self, index: int, state: dict[str, Any], key: str) -> torch.Tensor:
        """This rank's part of a tensor of a parameter's shape, on the CPU. ValueError where it has
        none."""
        if key not in state:
            raise ValueError(f"the state lacks '{key}': what was not sent yet would be lost")
        tensor = state[key]
        first, length, _ = self.places[index]
        self.check_shape(index, tensor.shape)
        if not isinstance(tensor, DTensor):
            return tensor.detach().cpu().flatten()[first : first + length]
        own = tensor.to_local().detach().cpu().flatten()
        if own.numel() != length:
            raise ValueError(f"'{key}' is divided in another way than the parameter: use load_checkpoint()")
        return own


def _groups(module: FSDPModule) -> list[Any]:
    """FSDP2's own record of what it reduces as one."""
    state = module._get_fsdp_state()
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:  # torch 2.11
        groups = [state._fsdp_param_group] if state._fsdp_param_group is not None else []
    if len(groups) > 1:
        raise ValueError("a module's parameters are sharded over several meshes: scalecom takes one")
    for group in groups:
        if group.mesh_info.replicate_mesh_dim is not None:
            raise ValueError(
                "the mesh has a dimension that replicates (HSDP), so FSDP2 takes the mean over nodes "
                'itself: give fully_shard the inner mesh alone, such as mesh["shard"], and the other '
                "one to between"
            )
        if group._all_reduce_hook is not None:
            raise ValueError("this model has an all-reduce hook already: it is registered once")
    return groups


def _shard_group(groups: list[Any]) -> dist.ProcessGroup:
    if not groups:
        raise ValueError("fully_shard was applied to modules that have no parameters of their own")
    ranks = {tuple(dist.get_process_group_ranks(g.mesh_info.shard_process_group)) for g in groups}
    if len(ranks) > 1:
        raise ValueError(f"the model's modules are sharded over different ranks: {sorted(ranks)}")
    return groups[0].mesh_info.shard_process_group
