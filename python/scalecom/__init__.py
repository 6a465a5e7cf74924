"""ScaleCom for PyTorch: one line turns gradient compression on in DistributedDataParallel.

    ddp = DistributedDataParallel(model)
    state = scalecom.register(ddp, "scalecom,rate=100,beta=0.1,warmup=500")

Under FSDP2, between nodes:

    fully_shard(model, mesh=mesh["shard"])
    state = scalecom.register_fsdp(model, "scalecom,rate=100", between=mesh["node"].get_group())
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scalecom._core import CheckError, PeerError, methods, options
    from scalecom.ddp import State, register
    from scalecom.fsdp import FsdpState, register_fsdp

__all__ = [
    "CheckError", "FsdpState", "PeerError", "State", "methods", "options", "register", "register_fsdp",
]
__version__ = "0.1.0"

_HOMES = {
    "CheckError": "_core", "PeerError": "_core", "methods": "_core", "options": "_core",
    "State": "ddp", "register": "ddp",
    "FsdpState": "fsdp", "register_fsdp": "fsdp",
}


def __getattr__(name: str) -> Any:
    """Torch and the extension are loaded when something of theirs is first asked for: the report needs
    neither. Whoever imports the extension comes by here, so the check comes first: it says in plain words
    what the loader would say in its own."""
    if name != "_core" and name not in _HOMES:
        raise AttributeError(f"module 'scalecom' has no attribute '{name}'")
    import torch

    from scalecom import _check

    _check.torch_version(torch.__version__)
    home = _import_module(f"scalecom.{_HOMES.get(name, name)}")
    value = home if name == "_core" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
