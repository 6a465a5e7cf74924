"""A training job of several ranks that can be hurt: who its processes are, when each ended, what it said."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

# Last, as folders of tests have the names of modules.
sys.path.append(str(Path(__file__).parents[1]))
import launched  # noqa: E402: its folder is no package

# Marks every process of a job, launchers and daemons too, as none of them forgets its environment.
MARK = "SCALECOM_FAULTS_JOB"


def environment() -> dict[str, str]:
    """Of ranks that share the cores of one machine, on the CPU."""
    return launched.environment() | {
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def processes_with(variable: str, value: str) -> dict[int, str]:
    """The commands of all processes that have this in their environment."""
    found = {}
    wanted = f"{variable}={value}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it has ended meanwhile
    return found


class Job:
    """`size` ranks, started by one or more launchers."""

    def __init__(self, commands: list[list[str]], size: int, notes: Path) -> None:
        self.size = size
        self._notes = notes
        shutil.rmtree(notes, ignore_errors=True)
        notes.mkdir(parents=True)
        self._mark = uuid.uuid4().hex
        settings = environment() | {MARK: self._mark, "SCALECOM_FAULTS_NOTES": str(notes)}
        self._said = [notes / f"launcher{i}.txt" for i in range(len(commands))]
        self.launchers = []
        for command, said in zip(commands, self._said, strict=True):
            with said.open("w") as out:
                self.launchers.append(
                    subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=settings)
                )
        self._watched: dict[int, int] = {}  # ranks by what tells their end
        self.pids: list[int] = []
        self.ended: dict[int, float] = {}  # ranks, and when

    def meet(self, seconds: float = 60) -> bool:
        """Waits until all ranks run; whether they do."""
        files = [self._notes / f"{rank}.pid" for rank in range(self.size)]
        wait_for(lambda: all(f.exists() for f in files) or self.is_over(), seconds)
        if not all(f.exists() for f in files):
            return False
        self.pids = [int(f.read_text()) for f in files]
        for rank, pid in enumerate(self.pids):
            try:
                self._watched[os.pidfd_open(pid)] = rank
            except ProcessLookupError:
                self.ended[rank] = time.monotonic()
        return True

    def is_over(self) -> bool:
        """Whether all launchers have ended."""
        return all(launcher.poll() is not None for launcher in self.launchers)

    def watch(self, until: float, ranks: set[int]) -> bool:
        """Notes the ends of all ranks until `ranks` have ended; whether they did in time."""
        poll = select.poll()
        for descriptor in self._watched:
            poll.register(descriptor, select.POLLIN)
        while not ranks <= self.ended.keys():
            left = until - time.monotonic()
            if left <= 0:
                return False
            for descriptor, _ in poll.poll(1000 * left):
                self.ended[self._watched.pop(descriptor)] = time.monotonic()
                poll.unregister(descriptor)
                os.close(descriptor)
        return True

    def signal(self, rank: int, number: int) -> None:
        if rank in self.ended:
            return
        try:
            os.kill(self.pids[rank], number)
        except ProcessLookupError:
            pass

    def said(self, rank: int) -> str:
        """On standard error."""
        file = self._notes / f"{rank}.err"
        return file.read_text(errors="replace") if file.exists() else ""

    def failed(self, rank: int) -> float | None:
        """When it met its error, where it leaves that, or else when it ended."""
        file = self._notes / f"{rank}.raised"
        return float(file.read_text()) if file.exists() else self.ended.get(rank)

    def launchers_said(self) -> str:
        return "".join(file.read_text(errors="replace") for file in self._said)

    def finish(self, seconds: float) -> bool:
        """Waits for the launchers; whether they ended."""
        return wait_for(self.is_over, seconds)

    def left_over(self) -> list[str]:
        """Processes that have outlived their launchers, and what they are."""
        return [f"{pid}: {command[:200]}" for pid, command in processes_with(MARK, self._mark).items()]

    def close(self) -> None:
        """Ends whatever is left."""
        for descriptor in self._watched:
            os.close(descriptor)
        self._watched.clear()
        for pid in processes_with(MARK, self._mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for launcher in self.launchers:
            launcher.kill()
            launcher.wait()
