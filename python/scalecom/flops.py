"""FLOPs per gradient of a model's parameters, as its first forward pass shows them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def _flops_per_gradient(module: nn.Module, output: torch.Tensor) -> float:
    """A multiplication and an addition for each weight and place of the output it is used for."""
    if isinstance(module, nn.Linear):
        return 2.0 * output.numel() / output.shape[-1]
    if isinstance(module, _CONVOLUTIONS):
        return 2.0 * output.numel() / output.shape[1]
    return 2.0 * output.shape[0] if output.dim() > 0 else 2.0


def count_on_first_forward(
    model: nn.Module, names: list[str], done: Callable[[list[float]], None]
) -> None:
    """Calls `done` with the figures of `names`, in their order, after the model's first forward."""
    figures: dict[str, float] = {}
    handles: list[RemovableHandle] = []

    def watch(path: str, module: nn.Module) -> None:
        own = [f"{path}.{n}" if path else n for n, _ in module.named_parameters(recurse=False)]

        def see(watched: nn.Module, _inputs: object, output: object) -> None:
            if isinstance(output, torch.Tensor):
                figures.update(dict.fromkeys(own, _flops_per_gradient(watched, output)))

        if own:
            handles.append(module.register_forward_hook(see))

    def finish(_model: nn.Module, _inputs: object, _output: object) -> None:
        for handle in handles:
            handle.remove()
        # What was not seen is used at least once a step.
        done([figures.get(name, 2.0) for name in names])

    for path, module in model.named_modules():
        watch(path, module)
    handles.append(model.register_forward_hook(finish))
