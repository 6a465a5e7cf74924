"""Worlds of ranks, each started once."""

from collections.abc import Callable, Iterator

import pytest
from ranks import Ranks


@pytest.fixture(scope="session")
def world() -> Iterator[Callable[[int], Ranks]]:
    """world(n): n ranks."""
    worlds: dict[int, Ranks] = {}

    def of(size: int) -> Ranks:
        if size not in worlds:
            worlds[size] = Ranks(size)
        return worlds[size]

    yield of
    for ranks in worlds.values():
        ranks.close()
