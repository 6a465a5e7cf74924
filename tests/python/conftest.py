"""Worlds of ranks, each started once, and which tests a device takes."""

import os
from collections.abc import Callable, Iterator

import devices
import pytest
import torch
from ranks import Ranks


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cpu(reason): makes sense on the CPU only")
    config.addinivalue_line("markers", "gpu(reason): makes sense on a GPU only")
    config.addinivalue_line("markers", "long: takes minutes; run with SCALECOM_TEST_LONG=1")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") is not None and "SCALECOM_TEST_LONG" not in os.environ:
        pytest.skip("long: run with SCALECOM_TEST_LONG=1")
    if devices.KIND == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    # A mark for another device than the one that is tested.
    other = item.get_closest_marker("gpu" if devices.KIND == "cpu" else "cpu")
    if other is not None:
        pytest.skip(other.args[0])


@pytest.fixture(scope="session")
def world() -> Iterator[Callable[[int], Ranks]]:
    """world(n): n ranks, others where one of those of the tests before is lost."""
    worlds: dict[int, Ranks] = {}

    def of(size: int) -> Ranks:
        if size not in worlds or worlds[size].lost:
            worlds[size] = Ranks(size)
        return worlds[size]

    yield of
    for ranks in worlds.values():
        ranks.close()
