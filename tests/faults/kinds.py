"""The faults, and what must be seen after each."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from job import Job
from launchers import DEADLINE, RANKS, Training
from shaped_network import ShapedHosts

# What a rank that has just been started takes until it waits for anybody.
STARTING = 3.0
# Of launchers, which find out by themselves that a host is out of reach; against hanging only.
PATIENCE = 90.0

# "[all_reduce] ..." and, of torch's own calls in a user's script, what ends their traceback.
OPERATION = re.compile(r"\[[a-z_]+\] \S|^(\[rank\d+\]: )?\w*Error: ", re.MULTILINE)


@dataclass
class Site:
    """Where a fault happens."""

    training: Training
    job: Job
    victim: int
    early: bool  # the ranks may still be looking for one another
    chance: random.Random
    hosts: ShapedHosts | None
    disk: Path | None  # a file system of its own, with the run on it
    grace: float  # what a rank may take beyond the deadline until it is gone


@dataclass
class Outcome:
    """`late` are seconds beyond the deadline at which the last survivor met its error: the moment it
    was gone, but for scripts, which take Python's time to end. Negative where all were sooner."""

    late: float | None = None
    gone: float | None = None  # the same, until it was gone
    named: int = 0  # survivors that named the operation
    survivors: int = 0
    knows_victim: bool | None = None  # whether any survivor named it, where that was to be
    wrong: str = ""  # what was not as it must be
    hangs: bool = False  # and that is why
    missed: bool = False  # the run had ended before


def _names(text: str, rank: int) -> bool:
    return any(str(rank) in numbers for numbers in re.findall(r"ranks? (\d+(?:, \d+)*)", text))


def _judge(site: Site, began: float, survivors: set[int], seconds: float = DEADLINE) -> Outcome:
    """Waits for the survivors, which have `seconds` and the grace, and sees what they say."""
    job = site.job
    job.watch(began + PATIENCE, survivors)
    failed = [job.failed(r) or began for r in survivors]
    outcome = Outcome(late=max(failed) - began - DEADLINE, survivors=len(survivors))
    outcome.gone = max(job.ended.get(r, began) for r in survivors) - began - DEADLINE
    outcome.named = sum(bool(OPERATION.search(job.said(r))) for r in survivors)
    # A script that has not begun yet first reads Python's modules, which is not what is measured.
    reading = site.early and site.training.launcher.script
    if reading:
        outcome.late = outcome.gone = None
    if not survivors <= job.ended.keys():
        outcome.wrong, outcome.hangs = f"ranks {sorted(survivors - job.ended.keys())} hang", True
    elif max(failed) > began + seconds + site.grace + STARTING * site.early and not reading:
        outcome.wrong = f"{max(failed) - began - DEADLINE:.1f} s beyond the deadline"
    return outcome


def _must_name(site: Site, outcome: Outcome, survivors: set[int]) -> None:
    launcher = site.training.launcher
    # A script that is still being read ends at once when torchrun asks it to.
    if site.early and launcher.script:
        return
    silent = [r for r in survivors if not OPERATION.search(site.job.said(r))]
    # So does a program whose libraries are still being loaded: it has not come to any operation.
    if site.early and launcher.engine == "torchrun":
        silent = [r for r in silent if site.job.said(r)]
    # mpirun ends the others as soon as the first has said it.
    if launcher.engine == "mpirun" and not launcher.recovers and len(silent) < len(survivors):
        silent = [r for r in silent if site.job.said(r)]
    outcome.knows_victim = any(_names(site.job.said(r), site.victim) for r in survivors)
    if silent and not outcome.wrong:
        outcome.wrong = f"ranks {silent} named no operation"
    # torch's collectives do not tell who is late, and before they have met, ranks do not know it.
    is_known = not site.early and not launcher.script
    if is_known and not outcome.knows_victim and not outcome.wrong:
        outcome.wrong = f"nobody named rank {site.victim}"


def kill(site: Site) -> Outcome:
    """One rank is gone from one moment to the next."""
    site.job.signal(site.victim, signal.SIGKILL)
    survivors = set(range(RANKS)) - {site.victim}
    outcome = _judge(site, time.monotonic(), survivors)
    # mpirun ends the others itself, and says which rank was the first.
    if site.training.launcher.engine == "mpirun" and not site.training.launcher.recovers:
        outcome.knows_victim = None
    else:
        _must_name(site, outcome, survivors)
    return outcome


def stop(site: Site) -> Outcome:
    """One rank does nothing for longer than the deadline, then goes on."""
    site.job.signal(site.victim, signal.SIGSTOP)
    began = time.monotonic()
    survivors = set(range(RANKS)) - {site.victim}
    asleep = began + DEADLINE + site.chance.uniform(0.5, 2)
    site.job.watch(asleep, survivors | {site.victim})
    time.sleep(max(0, asleep - time.monotonic()))
    awake = time.monotonic()
    site.job.signal(site.victim, signal.SIGCONT)
    outcome = _judge(site, began, survivors)
    _must_name(site, outcome, survivors)
    patience = DEADLINE + site.grace + STARTING * site.early
    if site.training.launcher.script:
        patience = PATIENCE
    if not site.job.watch(awake + patience, {site.victim}) and not outcome.wrong:
        outcome.wrong, outcome.hangs = "the rank that was stopped hangs", True
    return outcome


def link(site: Site) -> Outcome:
    """One host's network is gone; its rank and the others live on, apart."""
    assert site.hosts is not None
    site.hosts.cut(site.victim)
    everybody = set(range(RANKS))
    try:
        outcome = _judge(site, time.monotonic(), everybody)
        _must_name(site, outcome, everybody)
    finally:
        site.hosts.mend(site.victim)
    return outcome


def disk(site: Site) -> Outcome:
    """There is no more room where the run is written."""
    assert site.disk is not None
    ballast = site.disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):  # to the last byte
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    began = time.monotonic()
    everybody = set(range(RANKS))
    # It is met at the next checkpoint, by one rank or several; the others are told.
    site.job.watch(began + PATIENCE, {0})
    first = min(site.job.ended.values(), default=began)
    outcome = _judge(site, first, everybody, 0)
    outcome.late = outcome.gone = None
    said = "".join(site.job.said(r) for r in everybody)
    # The last two are torch.save's words for it.
    no_room = "No space left|cannot be written|file write failed|unexpected pos"
    if not outcome.wrong and not re.search(no_room, said):
        outcome.wrong = "nobody said that there is no room"
    os.unlink(ballast)
    return outcome


def terminate(site: Site) -> Outcome:
    """The job is to end, and is given time to: by its launcher, its ranks, or both, as schedulers do."""
    to = site.chance.choice(["ranks", "launchers", "both"])
    began = time.monotonic()
    if to != "launchers":
        for rank in range(RANKS):
            site.job.signal(rank, signal.SIGTERM)
    if to != "ranks":
        for launcher in site.job.launchers:
            launcher.terminate()
    everybody = set(range(RANKS))
    # Nobody waits for the deadline, but for the end of a step and its checkpoint.
    outcome = _judge(site, began, everybody, 5 * DEADLINE)
    outcome.late = outcome.gone = None
    outcome.named = 0  # nothing went wrong
    return outcome


KINDS: dict[str, Callable[[Site], Outcome]] = {
    "kill": kill, "stop": stop, "link": link, "disk": disk, "terminate": terminate,
}
