"""Where the tests compute: on the CPU, over gloo; or, with SCALECOM_TEST_DEVICE=cuda, on a GPU that
all ranks share, over NCCL."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

KIND = os.environ.get("SCALECOM_TEST_DEVICE", "cpu")
if KIND not in ("cpu", "cuda"):
    raise ValueError(f"SCALECOM_TEST_DEVICE is '{KIND}'; it is cpu or cuda")
DEVICE = torch.device("cuda", 0) if KIND == "cuda" else torch.device("cpu")
BACKEND = "nccl" if KIND == "cuda" else "gloo"
HOST_ONLY = pytest.mark.cpu("the method takes gradients in host memory")


def prepare_rank(rank: int) -> None:
    """For a rank's process, before it meets the others."""
    torch.set_num_threads(1)
    if KIND != "cuda":
        return
    # NCCL takes one rank a GPU of a host: so each is on a host of its own, as far as NCCL knows.
    os.environ.update(NCCL_HOSTID=f"rank{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
    # Runs are compared to the bit.
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.cuda.set_device(DEVICE)


def on_host(result: Any) -> Any:
    """A result with its tensors in host memory, to be sent to another process and compared there."""
    if isinstance(result, torch.Tensor):
        return result.detach().cpu()
    if isinstance(result, dict):
        return {key: on_host(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return type(result)(on_host(value) for value in result)
    return result
