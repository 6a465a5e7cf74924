"""Ranks as processes that live from test to test, each given the same function to run."""

from __future__ import annotations

import faulthandler
import os
import socket
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from devices import BACKEND, on_host, prepare_rank

DEADLINE = timedelta(seconds=60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _serve(rank: int, size: int, port: int, pipe: Any) -> None:
    faulthandler.enable()  # a rank that dies of a signal says where
    prepare_rank(rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    dist.init_process_group(BACKEND, rank=rank, world_size=size, timeout=DEADLINE)
    while (task := pipe.recv()) is not None:
        function, arguments = task
        try:
            torch.manual_seed(1234)
            pipe.send((on_host(function(rank, size, *arguments)), None))
        except BaseException as error:  # noqa: BLE001: it is the test's to judge
            pipe.send((None, (error, traceback.format_exc())))
    dist.destroy_process_group()


class RankError(Exception):
    """What a rank raised, with its own traceback."""


class Ranks:
    """`size` processes in one world, of the tests' device. A world that lost a rank is of no more use."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.patience = 3 * DEADLINE.total_seconds()  # with a function that is run
        self.lost = False  # a rank does not answer: another world is needed
        context = mp.get_context("spawn")
        port = _free_port()
        self._pipes, self._processes = [], []
        for rank in range(size):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(rank, size, port, there), daemon=True)
            process.start()
            self._pipes.append(here)
            self._processes.append(process)

    def outcomes(self, function: Callable[..., Any], *arguments: Any) -> list[tuple[Any, Any]]:
        """function(rank, size, *arguments) on every rank: what it returned, or (error, traceback)."""
        for pipe in self._pipes:
            pipe.send((function, arguments))
        results = []
        for rank, pipe in enumerate(self._pipes):
            if not pipe.poll(self.patience):
                self.close()
                raise RankError(f"rank {rank} does not answer")
            try:
                results.append(pipe.recv())
            except EOFError:
                self._processes[rank].join(10)
                code = self._processes[rank].exitcode
                self.close()
                raise RankError(f"rank {rank} died, with exit code {code}") from None
        return results

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The same; where a rank raised, this does."""
        outcomes = self.outcomes(function, *arguments)
        for rank, (_, failure) in enumerate(outcomes):
            if failure is not None:
                raise RankError(f"rank {rank}: {failure[1]}")
        return [result for result, _ in outcomes]

    def errors(self, function: Callable[..., Any], *arguments: Any) -> list[BaseException | None]:
        """What each rank raised."""
        return [f[0] if f else None for _, f in self.outcomes(function, *arguments)]

    def close(self) -> None:
        self.lost = True
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            try:
                pipe.send(None)
            except OSError:
                pass
        for process in self._processes:
            process.join(10)
            if process.is_alive():
                process.kill()
