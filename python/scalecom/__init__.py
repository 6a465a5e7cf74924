"""ScaleCom for PyTorch: one line turns gradient compression on in DistributedDataParallel.

    ddp = DistributedDataParallel(model)
    state = scalecom.register(ddp, "scalecom,rate=100,beta=0.1,warmup=500")
"""

import torch as _torch

from scalecom import _check

_check.torch_version(_torch.__version__)

# After the check, which says in plain words what the loader would say in its own.
from scalecom._core import CheckError, PeerError, methods, options  # noqa: E402
from scalecom.ddp import State, register  # noqa: E402

__all__ = ["CheckError", "PeerError", "State", "methods", "options", "register"]
__version__ = "0.1.0"
