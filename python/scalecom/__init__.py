"""ScaleCom for PyTorch: one line turns gradient compression on in DistributedDataParallel.

    ddp = DistributedDataParallel(model)
    state = scalecom.register(ddp, "scalecom,rate=100,beta=0.1,warmup=500")

Under FSDP2, between nodes:

    fully_shard(model, mesh=mesh["shard"])
    state = scalecom.register_fsdp(model, "scalecom,rate=100", between=mesh["node"].get_group())
"""

import torch as _torch

from scalecom import _check

_check.torch_version(_torch.__version__)

# After the check, which says in plain words what the loader would say in its own.
from scalecom._core import CheckError, PeerError, methods, options  # noqa: E402
from scalecom.ddp import State, register  # noqa: E402
from scalecom.fsdp import FsdpState, register_fsdp  # noqa: E402

__all__ = [
    "CheckError", "FsdpState", "PeerError", "State", "methods", "options", "register", "register_fsdp",
]
__version__ = "0.1.0"
