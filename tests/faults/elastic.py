"""4 ranks, then 3, then 8: training goes on, and what was not sent yet goes on with it.

    python tests/faults/elastic.py build/release/cli/scalecom

By mpirun a run is stopped and resumed with other numbers of processes and learners. Torchrun starts
its ranks anew by itself: as many, after one of them was killed, and others where agents leave and join.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from job import MARK, Job, environment, processes_with, wait_for
from launchers import free_port

POINTS = 0.5
# Of the largest entry of a tensor's memory, whose mean over ranks is taken in fp32.
ROUNDING = 1e-6
# Against hanging only.
PATIENCE = 900
HERE = Path(__file__).parent
METHOD = ["--method", "scalecom,rate=20,beta=0.1,warmup=10"]


def _last_step(folder: Path) -> int:
    names = [f.name.removeprefix("step-") for f in folder.glob("*")]
    return max((int(name) for name in names if name.isdecimal()), default=0)


def _result(run: Path) -> dict:
    return json.loads((run / "result.json").read_text())


def _compare(what: str, run: Path, straight: Path) -> bool:
    value, undisturbed = _result(run)["value"], _result(straight)["value"]
    well = value >= undisturbed - POINTS
    print(f"{what}: {value:.2f} %, undisturbed {undisturbed:.2f} %{'' if well else ': too low'}", flush=True)
    return well


def by_mpirun(program: str, folder: Path, task: str, steps: int, numbers: Sequence[int]) -> bool:
    """A third of the steps with each number of ranks."""
    run, straight = folder / "mpirun", folder / "straight"
    train = [program, "train", "--task", task, *METHOD, "--steps", str(steps)]
    subprocess.run([*train, "--learners", str(numbers[0]), "--out", str(straight)], check=True,
                   env=environment(), stdout=subprocess.DEVNULL)
    for turn, ranks in enumerate(numbers):
        command = [*train, "--out", str(run)] if turn == 0 else [program, "train", "--resume", str(run)]
        command += ["--learners", str(ranks), "--checkpoint-every", str(steps // 60)]
        job = Job([["mpirun", "-n", str(ranks), str(HERE / "rank.sh"), *command]], ranks, folder / "notes")
        try:
            assert job.meet(), job.launchers_said()
            if turn + 1 < len(numbers):
                aim = steps * (turn + 1) // len(numbers)
                wait_for(lambda: _last_step(run / "checkpoints") >= aim or job.is_over(), PATIENCE)
                job.signal(0, signal.SIGTERM)
            assert job.finish(PATIENCE), "mpirun hangs"
            assert _last_step(run / "checkpoints"), job.launchers_said() + job.said(0)
        finally:
            job.close()
        print(f"mpirun, {ranks} ranks: to step {_last_step(run / 'checkpoints')}", flush=True)
    return _compare(f"mpirun, {task}", run, straight)


def _torchrun(*options: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--monitor-interval", "0.2", *options]


def _script(run: Path, steps: int, *options: str) -> list[str]:
    """Has the same bits with and without restarts, of the same number of ranks."""
    return [str(HERE / "ddp_train.py"), "--out", str(run), "--steps", str(steps), "--every",
            str(steps // 60), "--deadline", "60", "--keep-buckets", "--note-memory", *options]


class Agents:
    """torchrun's, that come and go.

    They give the ranks of every start a store of their own. By default torchrun keeps one store for
    all starts, in which ranks may find the addresses of those before them, and call the dead."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._environment = environment() | {MARK: str(folder), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        self._agents: list[subprocess.Popen] = []
        self._started = 0

    def start(self, command: list[str]) -> None:
        with (self._folder / f"agent{self._started}.txt").open("w") as out:
            self._agents.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT,
                                                 env=self._environment))
        self._started += 1

    def kill_worker(self) -> None:
        """One of the first agent's."""
        os.kill(self._workers(self._agents[0])[-1], signal.SIGKILL)

    def kill_last(self) -> None:
        """With its ranks: as a machine that is gone."""
        agent = self._agents.pop()
        for pid in [agent.pid, *self._workers(agent)]:
            os.kill(pid, signal.SIGKILL)
        agent.wait()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        wait_for(lambda: condition() or self._are_over(), PATIENCE)
        assert condition(), self._said()

    def finish(self) -> None:
        assert wait_for(self._are_over, PATIENCE), "torchrun's agents hang"
        self._agents.clear()

    def close(self) -> None:
        for agent in self._agents:
            agent.kill()
            agent.wait()
        for pid in processes_with(MARK, str(self._folder)):
            os.kill(pid, signal.SIGKILL)

    def _are_over(self) -> bool:
        return all(agent.poll() is not None for agent in self._agents)

    def _said(self) -> str:
        return "".join(f.read_text(errors="replace") for f in sorted(self._folder.glob("agent*.txt")))

    @staticmethod
    def _workers(agent: subprocess.Popen) -> list[int]:
        return list(map(int, Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()))


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _starts(run: Path) -> list[dict]:
    """Of ranks that took up a checkpoint: which, how many there were and are, and how their mean memory
    changed."""
    file = run / "memory.jsonl"
    return [json.loads(line) for line in file.open()] if file.exists() else []


def _goes_on(run: Path, ranks: int) -> bool:
    """Whether so many ranks took up a checkpoint, and have left another one since."""
    starts = _starts(run)
    return bool(starts) and starts[-1]["ranks"] == ranks and _last_step(run) > starts[-1]["step"]


@dataclass(frozen=True)
class Moment:
    """At which a run was hurt."""

    starts: int
    checkpoint: int

    @staticmethod
    def now(run: Path) -> Moment:
        return Moment(len(_starts(run)), _last_step(run))


def _judge(what: str, run: Path, moments: list[Moment], changes: list[tuple[int, int]]) -> bool:
    """Whether ranks went on with the last checkpoint that was there when they were hurt, or a later one,
    and with what it had not sent, through all of these changes."""
    starts = _starts(run)
    for start in starts:
        print("{0}, {former} -> {ranks} ranks after step {step}: the mean memory changed by {change:.1e} "
              "of its largest entry".format(what, **start), flush=True)
    seen = [(start["former"], start["ranks"]) for start in starts]
    missing = [change for change in changes if change not in seen]
    early = [m for m in moments if m.starts < len(starts) and starts[m.starts]["step"] < m.checkpoint]
    if missing or early:
        print(f"{what}: not seen: {missing}; gone on from an earlier checkpoint: {early}")
    return not missing and not early and all(start["change"] < ROUNDING for start in starts)


def by_restart(folder: Path, steps: int, ranks: int) -> bool:
    """A rank is killed, and torchrun starts all anew (--max-restarts)."""
    run, straight = folder / "restart", folder / "straight-torchrun"
    agents = Agents(folder / "restart-agents")
    launch = _torchrun("--standalone", "--nproc-per-node", str(ranks), "--max-restarts", "3")
    try:
        agents.start([*launch, *_script(straight, steps)])
        agents.wait_until((straight / "result.json").exists)
        agents.finish()
        agents.start([*launch, *_script(run, steps)])
        agents.wait_until(lambda: _last_step(run) >= steps // 3)
        moment = Moment.now(run)
        agents.kill_worker()
        agents.wait_until((run / "result.json").exists)
        agents.finish()
    finally:
        agents.close()
    same = _result(run) == _result(straight)
    print(f"torchrun, restarted: {'the same bits as undisturbed' if same else 'other bits'}", flush=True)
    return _judge("torchrun, restarted", run, [moment], [(ranks, ranks)]) and same


def by_torchrun(folder: Path, steps: int, ranks: Sequence[int]) -> bool:
    """An agent dies with its ranks; then one joins that has more of them (--nnodes=MIN:MAX)."""
    before, fewer, more = ranks
    run, straight = folder / "torchrun", folder / "straight-torchrun"
    agents = Agents(folder / "agents")
    port = free_port()
    conf = "last_call_timeout=5,join_timeout=300,keep_alive_interval=2,keep_alive_max_attempt=4"
    meeting = ["--nnodes", "1:2", "--max-restarts", "10", "--rdzv-backend", "c10d", "--rdzv-endpoint",
               f"127.0.0.1:{port}", "--rdzv-id", "elastic", "--rdzv-conf", conf]
    script = _script(run, steps, "--wait-at", str(2 * steps // 3), str(fewer))

    def start(count: int) -> None:
        agents.start([*_torchrun(*meeting, "--nproc-per-node", str(count)), *script])

    moments = []
    try:
        start(fewer)
        # Who comes first has the store, and is not to be killed.
        agents.wait_until(lambda: _answers(port))
        start(before - fewer)
        agents.wait_until(lambda: _last_step(run) >= steps // 6)
        moments.append(Moment.now(run))
        agents.kill_last()
        agents.wait_until(lambda: _goes_on(run, fewer))
        moments.append(Moment.now(run))
        start(more - fewer)
        agents.wait_until((run / "result.json").exists)
        agents.finish()
    finally:
        agents.close()
    well = _compare("torchrun, clusters", run, straight)
    return _judge("torchrun", run, moments, [(before, fewer), (fewer, more)]) and well


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", help="the scalecom program")
    parser.add_argument("--ranks", type=int, nargs=3, default=[4, 3, 8], metavar=("FIRST", "FEWER", "MORE"))
    parser.add_argument("--task", default="fashion-mnist", help="for mpirun (fashion-mnist)")
    parser.add_argument("--steps", type=int, default=1800, help="for mpirun (1800)")
    parser.add_argument("--script-steps", type=int, default=900, help="for torchrun (900)")
    parser.add_argument("--only", choices=["mpirun", "torchrun"])
    args = parser.parse_args()
    began = time.monotonic()
    well = True
    with tempfile.TemporaryDirectory(prefix="scalecom_elastic_") as name:
        folder = Path(name)
        if args.only != "torchrun":
            program = str(Path(args.program).resolve())
            well = by_mpirun(program, folder, args.task, args.steps, args.ranks)
        if args.only != "mpirun":
            well = by_restart(folder, args.script_steps, args.ranks[0]) and well
            well = by_torchrun(folder, args.script_steps, args.ranks) and well
    print(f"this took {(time.monotonic() - began) / 60:.1f} minutes")
    sys.exit(not well)


if __name__ == "__main__":
    main()
