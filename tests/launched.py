"""How tests start programs, and launchers of their own, whoever has started the tests."""

from __future__ import annotations

import os


def environment() -> dict[str, str]:
    """Without what tells a process that mpirun or torchrun started it, with what mpirun needs in a
    container."""
    launchers = ("OMPI_COMM", "PMIX", "PMI_", "TORCHELASTIC_", "RANK", "WORLD_SIZE", "MASTER_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(launchers)}
    return kept | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    }
