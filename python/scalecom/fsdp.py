"""ScaleCom between nodes, under FSDP2 (torch.distributed.fsdp.fully_shard) inside them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from os import PathLike, fspath
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.tensor import DTensor

from scalecom import _core
from scalecom.flops import count_on_first_forward
from scalecom.groups import can_end_groups_of, same_ranks
from scalecom.hook_state import HookState
from scalecom.shards import Shards
from scalecom.together import check_same, largest, together

_log = logging.getLogger("scalecom")
T = TypeVar("T")


def register_fsdp(
    model: nn.Module,
    method: str = "scalecom",
    *,
    between: dist.ProcessGroup,
    rates: str | None = None,
    deadline: timedelta = timedelta(minutes=30),
) -> FsdpState:
    """Makes `method` the way in which the nodes of a sharded model take the mean of their gradients.

    Args:
        model: A model given to `fully_shard`, it and those of its blocks that are to be, over a mesh
            of one dimension: the ranks of this node.
        method: As for `register`, without `groups`.
        between: This rank's peers: one rank a node, all with the same place in their node's mesh. With
            a mesh of ("node", "shard") it is `mesh["node"].get_group()`.
        rates: As for `register`.
        deadline: The longest that a step waits for the other nodes.

    Returns:
        The state, to be saved with the model: it holds what was not sent yet.

    Every rank of every node calls this with the same arguments, before the first backward pass. A
    parameter without a gradient counts as one with zeros.
    """
    if not isinstance(between, dist.ProcessGroup):
        raise TypeError(
            f"between is a {type(between).__name__}: give the process group of this rank's peers, such "
            'as mesh["node"].get_group()'
        )
    spec = method if rates is None else f"{method},rates={rates}"
    shards = Shards(model)
    _check_peers(shards, between)
    if shards.device.type == "cuda" and not _core.has_cuda():
        raise ValueError(
            "the model is on a GPU, and this scalecom was built without CUDA: it takes models on the CPU"
        )
    nodes = dist.get_world_size(between)
    check_same(
        everywhere=f"'{spec}' for {nodes} nodes of {shards.size} ranks and {shards.summary()}",
        among_peers=f"shard {shards.rank}",
        peers=between,
        node=shards.group,
    )
    # The same everywhere, so that all ranks are refused before there is a group, or none is.
    _core.Fsdp.check(spec, shards.names, shards.shapes)
    group = same_ranks(between, deadline)
    core = _core.Fsdp(
        spec, shards.names, shards.shapes, shards.places, shards.members, group,
        deadline.total_seconds(),
    )
    stream = torch.cuda.Stream(shards.device, priority=-1) if shards.device.type == "cuda" else None
    for index, module in enumerate(shards.modules):
        module.set_all_reduce_hook(_hook(core, index, stream), stream=stream)
    if hasattr(shards.model, "set_reduce_scatter_unused_params"):  # not in every torch
        shards.model.set_reduce_scatter_unused_params(True)
    if core.wants_flops():
        count_on_first_forward(shards.model, shards.paths, _node_flops(core, shards.group))
    state = FsdpState(core, shards, group, can_end_groups_of(between))
    state._announce()
    return state


class FsdpState(HookState):
    """What a method remembers at this rank, and what it has done. Made by `register_fsdp`."""

    def __init__(
        self, core: _core.Fsdp, shards: Shards, group: dist.ProcessGroup, can_end_groups: bool
    ) -> None:
        sizes = {name: place[1] for name, place in zip(shards.names, shards.places, strict=True)}
        # The peers are not divided further.
        super().__init__(core, sizes, group, None, can_end_groups)
        self._names = shards.names
        self._shards = shards

    @property
    def node(self) -> int:
        """This node's number among its peers."""
        return dist.get_rank(self._group)

    @property
    def nodes(self) -> int:
        return dist.get_world_size(self._group)

    def state_dict(self) -> dict[str, Any]:
        """This node's memories as DTensors over its mesh, for torch.distributed.checkpoint.

        Memories differ from node to node, so their keys begin with the node's number. What was
        saved with the same number of nodes, and shards of any size, dcp.load puts into such a
        dictionary; load_checkpoint() takes any number of nodes.
        """
        state: dict[str, Any] = {"method": self.method, "steps": self.steps, "nodes": self.nodes}
        memories = self._core.memories()
        for index, rate in enumerate(self._core.rates()):
            own = memories.pop(self._shards.key(index), None)
            if rate > 1 or own is not None:
                state[_key(self.node, self._names[index])] = self._shards.distributed(index, own)
        if memories:
            raise ValueError(
                f"'{self.method}' remembers '{min(memories)}', which is no shard of a parameter, and "
                "would be lost"
            )
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes back what state_dict() gave, of this node or, where their number is another one, of
        all former nodes. Then every node gets a mean of their memories, such that the mean over
        nodes stays what it was.

        Memories are DTensors over this node's mesh, or whole tensors. Raises ValueError, and changes
        nothing, where one is missing, or not this model's.
        """
        for key in ("method", "steps", "nodes"):
            if key not in state:
                raise ValueError(f"this is no state of scalecom: it has no '{key}'")
        if state["method"] != self.method:
            raise ValueError(
                f"the state was saved by '{state['method']}', and this is '{self.method}'; load it into "
                "the former, then configure() it"
            )
        shares = _shares(self.node, self.nodes, int(state["nodes"]))
        saved = self._saved_names(state, int(state["nodes"]))
        memories = {}
        for name in saved:
            index = self._names.index(name)
            own = [(self._shards.local(index, state, _key(node, name)), w) for node, w in shares]
            if self._sizes[name] == 0:
                continue
            mean = own[0][0] if len(own) == 1 else sum(m.double() * w for m, w in own).float()
            memories[self._shards.key(index)] = mean
        self._restore(int(state["steps"]), memories)

    def load_checkpoint(
        self, checkpoint: str | PathLike[str] | dcp.StorageReader, key: str = "scalecom"
    ) -> None:
        """Takes back what dcp.save wrote of state_dict() under `key`, whatever the number of nodes and
        the size of their shards were. Every rank calls it. Raises ValueError as load_state_dict().

        torch unpickles a checkpoint's metadata, and what is no tensor in it, which can run code: give
        folders that you trust. save() and load() read no pickle."""
        is_reader = isinstance(checkpoint, dcp.StorageReader)
        reader = checkpoint if is_reader else dcp.FileSystemReader(checkpoint)
        saved = reader.read_metadata().state_dict_metadata
        if f"{key}.nodes" not in saved:
            raise ValueError(f"the checkpoint has no state of scalecom under '{key}'")
        state: dict[str, Any] = {"method": "", "steps": 0, "nodes": 0}
        dcp.load({key: state}, storage_reader=reader)
        sizes = {
            name.removeprefix(f"{key}."): entry.size
            for name, entry in saved.items()
            if name.startswith(f"{key}.") and isinstance(entry, TensorStorageMetadata)
        }
        memories = self._room_for(sizes, int(state["nodes"]))
        if sizes:
            dcp.load({key: memories}, storage_reader=reader)
        self.load_state_dict({**state, **memories})

    def _room_for(self, sizes: dict[str, torch.Size], former: int) -> dict[str, DTensor]:
        """For what this rank needs of the memories of former nodes."""
        room = {}
        for name in self._saved_names(sizes, former):
            index = self._names.index(name)
            for node, _ in _shares(self.node, self.nodes, former):
                key = _key(node, name)
                if key in sizes:
                    self._shards.check_shape(index, sizes[key])
                    room[key] = self._shards.distributed(index)
        return room

    def save(self, folder: str | PathLike[str]) -> None:
        """Writes the memories of all ranks of all nodes into a folder, as safetensors files; every
        rank calls it."""
        ranks = self._shards.size
        rank, world = self.node * ranks + self._shards.rank, self.nodes * ranks
        # Larger than that of every save there, so that a save which is cut short is mixed with none.
        seen = self._together(lambda: _core.next_number(fspath(folder)))
        number = largest(seen, peers=self._group, node=self._shards.group)
        self._together(lambda: self._core.save(fspath(folder), rank, world, number))

    def load(self, folder: str | PathLike[str]) -> None:
        """Reads such a folder, of any number of nodes and any size of shards; every rank calls it.
        A rank has its node's memories in host memory while it does. Where one rank cannot, all raise
        and nothing has changed."""
        steps, memories = self._together(lambda: self._core.load(fspath(folder)))
        self._restore(steps, memories)

    def _together(self, action: Callable[[], T]) -> T:
        return together(action, peers=self._group, node=self._shards.group)

    def _saved_names(self, keys: dict[str, Any], nodes: int) -> list[str]:
        """The parameters of whose memories a state speaks."""
        prefixes = tuple(_key(node, "") for node in range(nodes))
        names = {k.split(".", 1)[1] for k in keys if k.startswith(prefixes)}
        for name in names:
            if name not in self._sizes:
                raise ValueError(f"the state has a memory of '{name}', which this model has not")
        return sorted(names)

    def _announce(self) -> None:
        if self.node != 0 or self._shards.rank != 0:
            return
        _log.info("%s between %d nodes of %d ranks", self.method, self.nodes, self._shards.size)
        if self._core.wants_flops():
            _log.info("rates follow from the FLOPs of the first step")
            return
        sizes = [torch.Size(shape).numel() for shape in self._shards.shapes]
        packed = [size for size, rate in zip(sizes, self._core.rates(), strict=True) if rate > 1]
        _log.info(
            "%d of %d parameters compressed, %.1f%% of %d elements", len(packed), len(sizes),
            100 * sum(packed) / max(1, sum(sizes)), sum(sizes),
        )


def _key(node: int, name: str) -> str:
    return f"node{node}.{name}"


def _shares(node: int, nodes: int, former: int) -> list[tuple[int, float]]:
    """Which former nodes a node's memory is a mean of, and their weights."""
    shares = []
    for one in range(former):
        overlap = min((node + 1) * former, (one + 1) * nodes) - max(node * former, one * nodes)
        if overlap > 0:
            shares.append((one, overlap / former))
    return shares


def _hook(
    core: _core.Fsdp, index: int, stream: torch.cuda.Stream | None
) -> Callable[[torch.Tensor], None]:
    def reduce(shard: torch.Tensor) -> None:
        if stream is not None:
            shard.record_stream(stream)  # FSDP2 may drop it before its turn on the stream comes
        core.reduce(index, shard)

    return reduce


def _node_flops(core: _core.Fsdp, node: dist.ProcessGroup) -> Callable[[list[float]], None]:
    """The figures of a node's first rank for all of it; those of the first node become everybody's."""

    def set_flops(flops: list[float]) -> None:
        figures = [flops]
        dist.broadcast_object_list(figures, src=dist.get_process_group_ranks(node)[0], group=node)
        core.set_flops(figures[0])

    return set_flops


def _check_peers(shards: Shards, between: dist.ProcessGroup) -> None:
    peers, node = dist.get_process_group_ranks(between), dist.get_process_group_ranks(shards.group)
    if set(peers) & set(node) != {dist.get_rank()}:
        raise ValueError(
            f"the ranks {peers} of between and the ranks {node} that shard the model have to share this "
            f"rank, {dist.get_rank()}, and no other: between has one rank of every node"
        )
