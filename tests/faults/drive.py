"""Trains while things go wrong, and sees that nothing hangs, nothing is lost and every run can go on.

    python tests/faults/drive.py build/release/cli/scalecom --faults 200 --seed 1 --log runs/faults

A run meets several faults, each after another resume, and is then trained to its end and compared
with one that was never disturbed. What happened is written to the log, a line a fault; called again
with the same log, this goes on after the last run that it holds. Cut links take root, and so does a
full disk: without it they are left out, and that is said. Where no launcher can be used, nothing can be
hurt: it says "skipped" and why, and fails.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import report
from job import Job, environment, wait_for
from kinds import KINDS, PATIENCE, Outcome, Site
from launchers import EVERY, LAUNCHERS, RANKS, STEPS, TRAIN, Launcher, Training
from shaped_network import ShapedHosts

DISK = "6m"
# Points of accuracy by which runs may differ whose buckets are cut anew.
NOISE = 1.0


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[Path | None]:
    """A file system of its own; nothing where this may not mount one."""
    folder.mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)],
                          capture_output=True, check=False)
    try:
        yield folder if done.returncode == 0 else None
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def _is_installed(package: str) -> bool:
    """Whether it can be imported. A folder of tests that has its name, such as torch, is no package."""
    found = importlib.util.find_spec(package)
    return found is not None and found.origin is not None


def _missing(launcher: Launcher, prefix: str) -> str:
    """Why it cannot be used here; nothing where it can. Hosts' names begin with `prefix`."""
    if launcher.engine == "mpirun" and shutil.which("mpirun") is None:
        return "mpirun is not installed"
    for package in ["torch"] * (launcher.engine == "torchrun") + ["scalecom"] * launcher.script:
        if not _is_installed(package):
            return f"{sys.executable} has no package {package}"
    if launcher.hosts and os.geteuid() != 0:
        return "hosts of their own need root"
    if launcher.hosts:
        try:
            with ShapedHosts(1, None, prefix=prefix):
                pass
        except OSError as error:
            return str(error)
    return ""


class Driver:
    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args = args
        self.folder = folder
        self.hosts_prefix = f"sc-fault-{args.network}"
        self.log = args.log / "log.jsonl"
        if args.anew:
            shutil.rmtree(args.log, ignore_errors=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.lines = [json.loads(line) for line in self.log.open()] if self.log.exists() else []
        self.left_out: list[str] = []  # launchers, and why
        self.launchers = [launcher for launcher in LAUNCHERS if self._may_use(launcher)]

    def _may_use(self, launcher: Launcher) -> bool:
        if self.args.only and not any(launcher.name == name for name in self.args.only):
            return False
        missing = _missing(launcher, self.hosts_prefix)
        if missing:
            self.left_out.append(f"{launcher.name}: {missing}")
            print(f"left out: {self.left_out[-1]}")
        return not missing

    def met(self) -> int:
        return sum(not line.get("missed", True) for line in self.lines)

    def note(self, **line: object) -> None:
        self.lines.append(line)
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(" ".join(f"{k}={v}" for k, v in line.items() if v not in (None, "")), flush=True)

    def drive(self) -> None:
        complete = {line["run"] for line in self.lines if "value" in line}
        self.lines = [line for line in self.lines if line["run"] in complete]
        self.log.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        for number in itertools.count():
            if self.met() >= self.args.faults or not self.launchers:
                break
            if number not in complete:
                self.one_run(number)

    def one_run(self, number: int) -> None:
        """Its faults, then its end."""
        chance = random.Random(f"{self.args.seed}-{number}")
        launcher = self.launchers[number % len(self.launchers)]
        with contextlib.ExitStack() as stack:
            hosts = stack.enter_context(ShapedHosts(RANKS, None, prefix=self.hosts_prefix)) if launcher.hosts else None
            folder = self.folder / f"run{number}"
            disk = stack.enter_context(_small_disk(folder / "disk"))
            kinds = self.kinds(chance, hosts, disk)
            training = Training(launcher, self.args.program, folder, hosts)
            count = min(self.args.a_run, self.args.faults - self.met())
            for turn, kind in enumerate(kinds[:count]):
                after = STEPS * turn // (self.args.a_run + 1)
                # Some of the last ones while the run ends.
                if turn == self.args.a_run - 1 and kind != "disk" and chance.random() < 0.5:
                    after = STEPS
                self.one_fault(number, kind, after, training, chance, hosts, disk)
            self.end(number, training)
        shutil.rmtree(folder)

    def kinds(self, chance: random.Random, hosts: ShapedHosts | None, disk: Path | None) -> list[str]:
        if hosts is not None:
            kinds = ["link", "link", "kill", "stop", "terminate"]
        else:
            kinds = ["kill", "stop", "terminate", chance.choice(["kill", "stop", "terminate"])]
            kinds.append("disk" if disk is not None else "kill")
            if disk is None:
                print("left out: disk: this may not mount a file system")
        chance.shuffle(kinds)
        return kinds

    def one_fault(self, number: int, kind: str, after: int, training: Training, chance: random.Random,
                  hosts: ShapedHosts | None, disk: Path | None) -> None:
        steps = 300 if training.launcher.script else STEPS
        after = after * steps // STEPS
        # Mostly while it trains, and sometimes while the ranks still look for one another.
        early = kind != "disk" and chance.random() < 0.15
        step = after + chance.randrange(steps // (2 * self.args.a_run + 2))
        pause = chance.uniform(0, 0.4) if early else chance.uniform(0, 0.1)
        ending = after == steps
        if ending:
            early, step, pause = False, steps - 3 * EVERY, chance.uniform(0, 0.5)
        victim = chance.randrange(RANKS)
        before = training.checkpoint()
        job = training.start()
        try:
            outcome = Outcome(wrong="the ranks did not start")
            if job.meet():
                if not early:
                    wait_for(lambda: training.checkpoint() > max(step, before) or job.is_over(), PATIENCE)
                time.sleep(pause)
                if not job.is_over():
                    site = Site(training, job, victim, early, chance, hosts, disk, self.args.grace)
                    outcome = KINDS[kind](site)
                # Complete all the same, or already: the survivors had nothing to report, but none may hang.
                if training.is_complete() and not outcome.hangs:
                    outcome = Outcome(missed=True)
            began = time.monotonic()
            if not job.finish(PATIENCE) and not outcome.wrong:
                if outcome.missed and self._waits_for_a_dead_agent(training, job):
                    for launcher in job.launchers:
                        launcher.terminate()
                    job.finish(PATIENCE)
                else:
                    outcome.wrong = "the launcher hangs"
            launcher_seconds = time.monotonic() - began
            wait_for(lambda: not job.left_over(), 2)
            left = job.left_over()
            if left and not outcome.wrong:
                outcome.wrong = f"left over: {left}"
            if training.checkpoint() < before and not outcome.wrong:
                outcome.wrong = f"the checkpoint of step {before} is lost"
            if outcome.wrong:
                self.keep(number, kind, job)
            self.note(run=number, launcher=training.launcher.name, kind=kind, early=early, ending=ending, victim=victim,
                      **asdict(outcome), launcher_seconds=round(launcher_seconds, 2),
                      resumes_from=training.checkpoint())
        finally:
            job.close()

    @staticmethod
    def _waits_for_a_dead_agent(training: Training, job: Job) -> bool:
        """Whether the ranks are all gone and only torchrun is left: where a run is done, its agents wait
        for one another, for five minutes if one has failed."""
        agents = training.launcher.engine == "torchrun" and training.launcher.hosts
        return agents and job.watch(time.monotonic() + 1, set(range(RANKS)))

    def keep(self, number: int, kind: str, job: Job) -> None:
        """What all have said, for who looks into it."""
        with (self.args.log / f"said-{number}-{kind}.txt").open("w") as file:
            file.write(f"--- launchers\n{job.launchers_said()}\n")
            for rank in range(RANKS):
                file.write(f"--- rank {rank}\n{job.said(rank)}\n")

    def end(self, number: int, training: Training) -> None:
        """Trains on to the end, and compares."""
        job = training.start()
        try:
            wrong = ""
            if not job.finish(3 * PATIENCE) or not training.is_complete():
                wrong = "it could not be trained to its end"
                job.meet(0)
                self.keep(number, "end", job)
        finally:
            job.close()
        value, same = None, None
        if not wrong:
            result = json.loads((training.run / "result.json").read_text())
            straight = self.undisturbed(training.launcher)
            value, same = result["value"], result["weights"] == straight["weights"]
            if training.launcher.is_exact and not same:
                wrong = "its bits are not those of an undisturbed run"
            elif abs(value - straight["value"]) > NOISE:
                wrong = f"{value:.2f} points, undisturbed {straight['value']:.2f}"
        self.note(run=number, launcher=training.launcher.name, value=value, same=same, wrong=wrong)

    def undisturbed(self, launcher: Launcher) -> dict:
        """What comes out where nothing happens; the program needs no launcher for that."""
        out = self.folder / f"straight-{'-'.join(launcher.options)}-{launcher.script}"
        if not out.exists():
            plain = Launcher("", "torchrun", script=True, options=launcher.options)
            training = Training(plain, "", out, None)
            if launcher.script:
                job = training.start()
                try:
                    assert job.finish(3 * PATIENCE), "the undisturbed run hangs"
                finally:
                    job.close()
            else:
                subprocess.run([self.args.program, "train", *TRAIN, "--out", str(training.run)], check=True,
                               env=environment(), stdout=subprocess.DEVNULL)
        return json.loads((out / "disk" / "run" / "result.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", help="the scalecom program")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--a-run", type=int, default=5, choices=range(1, 6), metavar="N",
                        help="faults a run (5)")
    parser.add_argument("--grace", type=float, default=2, metavar="SECONDS",
                        help="that a rank may take beyond the deadline (2)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True, help="a folder")
    parser.add_argument("--network", default="a", metavar="LETTER",
                        help="of the hosts' names; another one for each of several drivers at once (a)")
    parser.add_argument("--anew", action="store_true", help="forget what the log holds")
    parser.add_argument("--only", action="append", choices=[launcher.name for launcher in LAUNCHERS],
                        metavar="LAUNCHER", help="use only these")
    args = parser.parse_args()
    args.program = str(Path(args.program).resolve())
    # Whoever ends this gets hosts and disks taken down.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="scalecom_faults_") as folder:
        driver = Driver(args, Path(folder))
        driver.drive()
    print(report.summary(driver.lines))
    print(f"this took {(time.monotonic() - began) / 60:.1f} minutes")
    wrong = any(line["wrong"] for line in driver.lines)
    if driver.met() < args.faults and not wrong:
        # What was not hurt has not passed; ctest counts it as skipped, by this word.
        sys.exit(f"skipped: {driver.met()} of {args.faults} faults were met, as no launcher can be used: "
                 f"{'; '.join(driver.left_out)}")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
