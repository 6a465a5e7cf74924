"""Ways to start a training of four ranks: one line each in `LAUNCHERS`."""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from job import Job

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench" / "network"))
from shaped_network import DEVICE, ShapedHosts  # noqa: E402: its folder is no package

RANKS = 4
# Longer than a step takes on a busy machine, and than four ranks take to meet.
DEADLINE = 4.0
STEPS = 600
EVERY = 10
METHOD = "scalecom,rate=20,beta=0.1,warmup=10"
TRAIN = ["--task", "synthetic", "--learners", str(RANKS), "--method", METHOD, "--steps", str(STEPS)]


@dataclass(frozen=True)
class Launcher:
    """`engine` is mpirun or torchrun. With `hosts`, every rank has a host with a link of its own.

    `script` trains by DistributedDataParallel in place of the program; `options` are what it gets."""

    name: str
    engine: str
    hosts: bool = False
    recovers: bool = False  # mpirun leaves survivors alone
    script: bool = False
    options: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether a resumed run has the bits of one that was never disturbed."""
        return not self.script or "--keep-buckets" in self.options


LAUNCHERS = [
    Launcher("mpirun", "mpirun"),
    Launcher("mpirun --enable-recovery", "mpirun", recovers=True),
    Launcher("torchrun", "torchrun"),
    Launcher("DDP, buckets kept", "torchrun", script=True, options=("--keep-buckets",)),
    Launcher("DDP", "torchrun", script=True),
    Launcher("mpirun, hosts", "mpirun", hosts=True),
    Launcher("mpirun --enable-recovery, hosts", "mpirun", hosts=True, recovers=True),
    Launcher("torchrun, hosts", "torchrun", hosts=True),
    Launcher("DDP, buckets kept, hosts", "torchrun", hosts=True, script=True,
             options=("--keep-buckets",)),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


class Training:
    """A run that may be started again and again until it is complete; its launchers' own files are
    in `folder`, as the run's disk may be full."""

    def __init__(self, launcher: Launcher, program: str, folder: Path, hosts: ShapedHosts | None) -> None:
        self.launcher = launcher
        self.run = folder / "disk" / "run"
        self._program = program
        self._notes = folder / "notes"
        self._folder = folder
        self._hosts = hosts

    def start(self) -> Job:
        ranks = [str(Path(__file__).parent / "rank.sh"), *self._command()]
        starts = self._mpirun(ranks) if self.launcher.engine == "mpirun" else self._torchrun(ranks)
        return Job(starts, RANKS, self._notes)

    def checkpoint(self) -> int:
        """The step of the last complete one; 0 without any."""
        folder = self.run if self.launcher.script else self.run / "checkpoints"
        names = [f.name.removeprefix("step-") for f in folder.glob("*")]
        return max((int(name) for name in names if name.isdecimal()), default=0)

    def is_complete(self) -> bool:
        return (self.run / "result.json").exists()

    def _command(self) -> list[str]:
        if self.launcher.script:
            return [sys.executable, str(Path(__file__).parent / "ddp_train.py"), "--out", str(self.run),
                    "--deadline", str(DEADLINE), *self.launcher.options]
        what = TRAIN + ["--out", str(self.run)]
        if (self.run / "config.json").exists():
            what = ["--resume", str(self.run)]
        return [self._program, "train", *what, "--deadline", str(DEADLINE), "--checkpoint-every", str(EVERY)]

    def _mpirun(self, command: list[str]) -> list[list[str]]:
        mpirun = ["mpirun", "-n", str(RANKS)]
        if self.launcher.recovers:
            mpirun.append("--enable-recovery")
        if self._hosts is None:
            return [mpirun + command]
        # Daemons on one machine need folders of their own.
        agent = self._folder / "agent"
        agent.write_text(
            f'#!/bin/sh\nhost=$1; shift\nmkdir -p "{self._folder}/tmp-$host"\n'
            f'exec ip netns exec "$host" env TMPDIR="{self._folder}/tmp-$host" sh -c "$*"\n'
        )
        agent.chmod(0o755)
        mpirun += ["--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "tcp,self"]
        mpirun += ["--mca", "btl_tcp_if_include", DEVICE, "--mca", "oob_tcp_if_include", DEVICE]
        mpirun += ["-H", ",".join(f"{name}:1" for name in self._hosts.names)]
        return [self._hosts.command(0, mpirun + command)]

    def _torchrun(self, command: list[str]) -> list[list[str]]:
        torchrun = [sys.executable, "-m", "torch.distributed.run"]
        if self._hosts is None:
            return [[*torchrun, "--standalone", "--nproc-per-node", str(RANKS), "--no-python", *command]]
        port = str(free_port())
        return [
            self._hosts.command(host, [
                "env", f"GLOO_SOCKET_IFNAME={DEVICE}", *torchrun, "--nnodes", str(RANKS),
                "--nproc-per-node", "1", "--node-rank", str(host), "--master-addr",
                self._hosts.addresses[0], "--master-port", port, "--no-python", *command,
            ])
            for host in range(RANKS)
        ]
