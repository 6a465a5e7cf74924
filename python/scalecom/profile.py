"""A model's layers as `scalecom plan` reads them, measured while the model trains."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable
from os import PathLike
from types import TracebackType
from typing import Any

import torch
from torch import nn

from scalecom import new_file

# Steps whose times do not count: buckets are cut anew, caches are cold.
_WARM_UPS = 1
_FEWEST = 2


class _Moments:
    """Points in time of one step, in the order in which they came: of the device, where it is a GPU."""

    def __init__(self, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self._marks: list[tuple[str, str, Any]] = []

    def mark(self, kind: str, layer: str) -> None:
        if self._on_gpu:
            moment: Any = torch.cuda.Event(enable_timing=True)
            moment.record()
        else:
            moment = time.perf_counter()
        self._marks.append((kind, layer, moment))

    def since_last(self) -> Iterable[tuple[str, str, float]]:
        """Each with its milliseconds since the one before, the first's being 0."""
        for i, (kind, layer, moment) in enumerate(self._marks):
            before = self._marks[max(0, i - 1)][2]
            passed = before.elapsed_time(moment) if self._on_gpu else 1e3 * (moment - before)
            yield kind, layer, passed


class _StepTimes:
    """Milliseconds of a step's layers, and of all outside both passes."""

    def __init__(self, moments: _Moments) -> None:
        self.forward: dict[str, float] = {}
        self.backward: dict[str, float] = {}
        self.other = 0.0
        carried = 0.0  # until the layer that it belongs to is known
        for kind, layer, passed in moments.since_last():
            carried += passed
            # What is computed again during the backward pass is a part of that.
            if kind == "forward" and self.backward:
                continue
            if kind == "end":
                self.other = carried
            elif kind != "begin":
                times = self.forward if kind == "forward" else self.backward
                times[layer] = times.get(layer, 0.0) + carried
            carried = 0.0


class Profile:
    """Between its beginning and its end, the steps of a model are measured, layer by layer.

    A layer is a module that has parameters of its own. What goes on between the ends of two layers counts
    for the later one; what follows the last gradient of a step, for all outside both passes.
    """

    def __init__(
        self, model: nn.Module, names: list[str], path: str | PathLike[str], batch: int, writes: bool
    ) -> None:
        if not isinstance(batch, int) or batch < 1:
            raise ValueError(f"batch is {batch!r}: it is the number of samples of a rank's step, 1 or more")
        self._model, self._batch, self._path, self._writes = model, batch, path, writes
        trained = set(names)
        self._layers: dict[str, dict[str, torch.Tensor]] = {}
        for layer, module in model.named_modules():
            own = {
                name: parameter
                for short, parameter in module.named_parameters(recurse=False)
                if (name := f"{layer}.{short}" if layer else short) in trained
            }
            if own:
                self._layers[layer] = own
        self._on_gpu = any(p.is_cuda for own in self._layers.values() for p in own.values())
        self._steps: list[_Moments] = []
        self._handles: list[Any] = []

    def __enter__(self) -> Profile:
        modules = dict(self._model.named_modules())
        self._handles.append(self._model.register_forward_pre_hook(lambda *_: self._begin_step()))
        for layer, own in self._layers.items():
            self._handles.append(
                modules[layer].register_forward_hook(lambda *_, layer=layer: self._mark("forward", layer))
            )
            for parameter in own.values():
                self._handles.append(
                    parameter.register_hook(lambda _, layer=layer: self._mark("backward", layer))
                )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        if error is not None:
            return
        self._mark("end", "")
        if self._on_gpu:
            torch.cuda.synchronize()
        steps = [_StepTimes(moments) for moments in self._steps]
        counted = [step for step in steps[_WARM_UPS:] if step.backward]
        if len(counted) < _FEWEST:
            raise ValueError(
                f"{len(steps)} steps were taken: a profile takes {_WARM_UPS + _FEWEST} or more, each a forward "
                "and a backward pass"
            )
        if self._writes:
            self._write(counted)

    def _begin_step(self) -> None:
        self._mark("end", "")
        self._steps.append(_Moments(self._on_gpu))
        self._mark("begin", "")

    def _mark(self, kind: str, layer: str) -> None:
        if self._steps:
            self._steps[-1].mark(kind, layer)

    def _write(self, steps: list[_StepTimes]) -> None:
        layers = [
            {
                "name": layer or type(self._model).__name__,
                "forward_ms": statistics.median([step.forward.get(layer, 0.0) for step in steps]),
                "backward_ms": statistics.median([step.backward.get(layer, 0.0) for step in steps]),
                "tensors": [{"name": n, "shape": list(p.shape)} for n, p in self._layers[layer].items()],
            }
            # In the order of the forward pass; what it did not meet comes last.
            for layer in dict.fromkeys([*steps[0].forward, *self._layers])
        ]
        content = {
            "name": type(self._model).__name__, "batch": self._batch,
            "other_ms": statistics.median([step.other for step in steps]), "layers": layers,
        }
        new_file.write(self._path, json.dumps(content, indent=1))
