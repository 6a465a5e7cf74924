"""Ranks over gloo at the hosts of a shaped network, and the frame of the scripts that measure with them.

Such a script starts itself once for every rank, with --worker. The first rank prints the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shaped_network import DEVICE, ShapedHosts

Figures = dict[str, Any]


def finish(ranks: Sequence[subprocess.Popen]) -> bool:
    """Waits for all of them; whether all did well. Once one has failed the others are ended, as they would
    wait for it."""
    try:
        while None in (states := [rank.poll() for rank in ranks]) and not any(states):
            time.sleep(0.1)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return not any(rank.returncode for rank in ranks)


def measure(network: str, hosts: int, ranks_a_host: int = 1) -> Figures:
    """What the first rank printed last, as JSON, of so many ranks at each of so many hosts whose links carry
    `network`. The hosts' ranks follow one another."""
    size = hosts * ranks_a_host
    with ShapedHosts(hosts, network) as shaped, tempfile.TemporaryFile("w+") as said:
        ranks = []
        for rank in range(size):
            environment = dict(
                os.environ, RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR=shaped.addresses[0],
                MASTER_PORT="29500", GLOO_SOCKET_IFNAME=DEVICE,
            )
            command = shaped.command(rank // ranks_a_host, [sys.executable, *sys.argv, "--worker"])
            ranks.append(subprocess.Popen(command, env=environment,
                                          stdout=said if rank == 0 else subprocess.DEVNULL))
        if not finish(ranks):
            sys.exit(f"{Path(sys.argv[0]).stem}: a rank failed (see above)")
        said.seek(0)
        return json.loads(said.read().strip().splitlines()[-1])


def main(
    parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], None],
    measured: Callable[[argparse.Namespace], Figures], show: Callable[[argparse.Namespace, Figures], None],
) -> None:
    """As a rank, does its work; otherwise gives the figures to machines, or shows them to people, or both."""
    parser.add_argument("--json", metavar="FILE", help="also write the figures here; - for stdout alone")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args)
        return
    if os.geteuid() != 0:
        parser.error("network namespaces need root")
    figures = measured(args)
    text = json.dumps(figures, indent=2)
    if args.json == "-":
        print(text)
        return
    if args.json:
        Path(args.json).write_text(text + "\n", encoding="utf-8")
    show(args, figures)
