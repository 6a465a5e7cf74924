"""4 ranks, then 3, then 8: training goes on, and what was not sent yet goes on with it.

    python tests/faults/elastic.py build/release/cli/scalecom

By mpirun a run is stopped and resumed with other numbers of processes and learners; by torchrun
agents leave and join, and torchrun starts the ranks anew.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from job import MARK, Job, environment, processes_with, wait_for
from launchers import free_port

RANKS = (4, 3, 8)
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


def _value(run: Path) -> float:
    return json.loads((run / "result.json").read_text())["value"]


def _compare(what: str, run: Path, straight: Path) -> bool:
    value, undisturbed = _value(run), _value(straight)
    well = value >= undisturbed - POINTS
    print(f"{what}: {value:.2f} %, undisturbed {undisturbed:.2f} %{'' if well else ': too low'}", flush=True)
    return well


def by_mpirun(program: str, folder: Path, task: str, steps: int) -> bool:
    """A third of the steps with each number of ranks."""
    run, straight = folder / "mpirun", folder / "straight"
    train = [program, "train", "--task", task, *METHOD, "--steps", str(steps)]
    subprocess.run([*train, "--learners", str(RANKS[0]), "--out", str(straight)], check=True,
                   env=environment(), stdout=subprocess.DEVNULL)
    for turn, ranks in enumerate(RANKS):
        command = [*train, "--out", str(run)] if turn == 0 else [program, "train", "--resume", str(run)]
        command += ["--learners", str(ranks), "--checkpoint-every", str(steps // 60)]
        job = Job([["mpirun", "-n", str(ranks), str(HERE / "rank.sh"), *command]], ranks, folder / "notes")
        try:
            assert job.meet(), job.launchers_said()
            if turn + 1 < len(RANKS):
                aim = steps * (turn + 1) // len(RANKS)
                wait_for(lambda: _last_step(run / "checkpoints") >= aim or job.is_over(), PATIENCE)
                job.signal(0, signal.SIGTERM)
            assert job.finish(PATIENCE), "mpirun hangs"
            assert _last_step(run / "checkpoints"), job.launchers_said() + job.said(0)
        finally:
            job.close()
        print(f"mpirun, {ranks} ranks: to step {_last_step(run / 'checkpoints')}", flush=True)
    return _compare(f"mpirun, {task}", run, straight)


class Agents:
    """torchrun's, each with one rank, that come and go; the first has the store where they meet."""

    def __init__(self, folder: Path, script: list[str]) -> None:
        self._folder = folder
        # Agents that share their store with the ranks give those of another count of restarts other
        # keys, and those of the same count the keys of the ranks before.
        self._environment = environment() | {MARK: str(folder), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        conf = "last_call_timeout=5,join_timeout=300,keep_alive_interval=2,keep_alive_max_attempt=4"
        self._command = [
            sys.executable, "-m", "torch.distributed.run", "--nnodes", f"{min(RANKS)}:{max(RANKS)}",
            "--nproc-per-node", "1", "--max-restarts", "10", "--monitor-interval", "0.2",
            "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--rdzv-id", "elastic",
            "--rdzv-conf", conf, *script,
        ]
        self._agents: list[subprocess.Popen] = []
        self._started = 0

    def start(self, count: int) -> None:
        for _ in range(count):
            with (self._folder / f"agent{self._started}.txt").open("w") as out:
                self._agents.append(subprocess.Popen(self._command, stdout=out, stderr=subprocess.STDOUT,
                                                     env=self._environment))
            self._started += 1

    def kill_last(self) -> None:
        """With its rank: as a machine that is gone."""
        agent = self._agents.pop()
        children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
        for pid in [agent.pid, *map(int, children)]:
            os.kill(pid, signal.SIGKILL)
        agent.wait()

    def are_over(self) -> bool:
        return all(agent.poll() is not None for agent in self._agents)

    def said(self) -> str:
        return "".join(f.read_text(errors="replace") for f in sorted(self._folder.glob("agent*.txt")))

    def close(self) -> None:
        for agent in self._agents:
            agent.kill()
            agent.wait()
        for pid in processes_with(MARK, str(self._folder)):
            os.kill(pid, signal.SIGKILL)


def by_torchrun(folder: Path, steps: int) -> bool:
    """An agent dies after a sixth of the steps; five are started after a third, and take their time."""
    run, straight = folder / "torchrun", folder / "straight-torchrun"
    script = [str(HERE / "ddp_train.py"), "--steps", str(steps), "--deadline", "30", "--out"]
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                    str(RANKS[0]), *script, str(straight)], check=True, env=environment(), capture_output=True)
    agents = Agents(folder, [*script, str(run), "--note-memory", "--every", str(steps // 60)])
    try:
        agents.start(RANKS[0])
        wait_for(lambda: _last_step(run) >= steps // 6 or agents.are_over(), PATIENCE)
        agents.kill_last()
        wait_for(lambda: _last_step(run) >= steps // 3 or agents.are_over(), PATIENCE)
        agents.start(RANKS[2] - RANKS[1])
        complete = wait_for(lambda: (run / "result.json").exists() or agents.are_over(), PATIENCE)
        assert complete and (run / "result.json").exists(), agents.said()
        assert wait_for(agents.are_over, PATIENCE), "torchrun's agents hang"
    finally:
        agents.close()
    well = _compare("torchrun, clusters", run, straight)
    changes = [json.loads(line) for line in (run / "memory.jsonl").open()]
    for line in changes:
        print("torchrun, {former} -> {ranks} ranks after step {step}: "
              "the mean memory changed by {change:.1e} of its largest entry".format(**line))
    seen = {(line["former"], line["ranks"]) for line in changes}
    if not {(4, 3), (3, 8)} <= seen:
        print(f"the ranks were {sorted(seen)}")
    return well and {(4, 3), (3, 8)} <= seen and all(line["change"] < ROUNDING for line in changes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", help="the scalecom program")
    parser.add_argument("--task", default="fashion-mnist", help="for mpirun (fashion-mnist)")
    parser.add_argument("--steps", type=int, default=1800, help="for mpirun (1800)")
    parser.add_argument("--script-steps", type=int, default=900, help="for torchrun (900)")
    parser.add_argument("--only", choices=["mpirun", "torchrun"])
    args = parser.parse_args()
    began = time.monotonic()
    well = True
    with tempfile.TemporaryDirectory(prefix="scalecom_elastic_") as folder:
        if args.only != "torchrun":
            well = by_mpirun(str(Path(args.program).resolve()), Path(folder), args.task, args.steps)
        if args.only != "mpirun":
            well = by_torchrun(Path(folder), args.script_steps) and well
    print(f"this took {(time.monotonic() - began) / 60:.1f} minutes")
    sys.exit(not well)


if __name__ == "__main__":
    main()
