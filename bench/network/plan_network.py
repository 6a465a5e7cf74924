"""Whether `scalecom plan` foretells what reductions take: measured and planned, side by side.

Hosts are network namespaces whose links have a rate and a distance. Over each such network real
reductions run under mpirun, and `scalecom plan` says what they should take, from what it can know
beforehand: the network as `plan --measure` finds it, and what compressing takes on this machine, where
hosts share its cores. Bytes are read from the hosts' network devices and held to the formulas.

A reduction over links without any shape shows what the host itself takes. Where that is over a third of
the measured time, the machine's cores, not the network, decide, and the cell says "host". What such a
reduction takes beyond its hops is what compressing takes here: ranks that wait for others keep a core busy,
and one that names entries has the others wait for it, of which a rank at work alone knows nothing.

    sudo .venv/bin/python bench/network/plan_network.py --rates 100mbit,1gbit --delays 0,1,20 --json cells.json
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaped_network import DEVICE, ShapedHosts

METHODS = {
    "dense": "dense",
    "scalecom": "scalecom,rate=100,first=compressed",
    "topk": "topk,rate=100,first=compressed",
    "gtopk": "gtopk,rate=100,first=compressed",
    "powersgd": "powersgd,rank=4",
}
PREFIX = "sc-plan"
# Ethernet, IP and TCP with its time stamps. Devices count a long TCP message that the card would cut as one
# packet with one header, in bytes and in packets alike.
HEADER_BYTES = 14 + 20 + 32
# What a link lets pass at once: below this the kernel's timers, not the rate, are the limit.
BURSTS = {"100mbit": "6kb", "1gbit": "512kb", "10gbit": "4mb"}
# Packets that a host's connections together send at once after a pause, about three megabytes. The system's
# ten each would make every message of a long distance begin slowly: what a connection that rests between
# steps pays is not in the model.
WINDOW = 2100
# Of the measured time, what the host itself may take where the network is the limit.
HOST_SHARE = 1 / 3
MOST_REPEATS = 200
# Without a shape, where a million elements take milliseconds.
UNSHAPED_ELEMENTS = 400_000_000
LEAST_UNSHAPED_REPEATS = 9


def mpi_settings(hosts: int) -> dict[str, str]:
    """Open MPI asks before it sends over 64 KB, and then serves several peers one after the other: half of a
    link lies idle. Receives are always there before their messages here, so nothing has to be asked. And it
    takes every host for a machine of its own, where a rank that waits may keep its core: here all share a few."""
    # The longest message: of the pieces in which long arrays are summed, 32 MiB for all peers together.
    longest = str((32 << 20) // (hosts - 1) + (1 << 20))
    return {
        "btl": "tcp,self", "btl_tcp_if_include": DEVICE, "oob_tcp_if_include": DEVICE,
        "btl_tcp_eager_limit": longest, "btl_tcp_rndv_eager_limit": longest, "btl_tcp_max_send_size": longest,
        "hwloc_base_binding_policy": "none", "mpi_yield_when_idle": "1",
    }


def why_not() -> str | None:
    """What this machine lacks, if anything."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "tc", "mpirun", "unshare"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    try:
        with ShapedHosts(1, "1gbit", prefix=PREFIX):
            return None
    except OSError as error:
        return f"network namespaces are not permitted here: {error}"


class Cluster:
    """Namespaces as hosts of mpirun, one rank each."""

    def __init__(self, hosts: ShapedHosts, program: Path, folder: Path) -> None:
        self._hosts, self._program, self._folder = hosts, program, folder
        self._agent = folder / "start_at_host"
        # Hosts have names of their own: Open MPI keeps files by them.
        self._agent.write_text(
            '#!/bin/sh\nhost=$1\nshift\nexec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"\n'
        )
        self._agent.chmod(0o755)

    def run(self, *arguments: object) -> dict[str, Any]:
        """The --json of the program, run at all hosts."""
        output = self._folder / "output.json"
        settings = [word for pair in mpi_settings(len(self._hosts.names)).items() for word in ("--mca", *pair)]
        command = [
            "mpirun", "--allow-run-as-root", *settings, "--mca", "plm_rsh_agent", str(self._agent),
            "-H", ",".join(f"{name}:1" for name in self._hosts.names), "-x", "SCALECOM_THREADS=1",
            str(self._program), *map(str, arguments), "--json", str(output),
        ]
        for attempt in range(3):
            done = subprocess.run(self._hosts.command(0, command), capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return json.loads(output.read_text())
            print(f"mpirun failed ({attempt + 1}): {done.stderr.strip()[-300:]}", file=sys.stderr)
        sys.exit("plan_network: mpirun failed three times")


@dataclass(frozen=True)
class Network:
    rate: str | None  # None: as fast as the host is
    delay_ms: float
    hosts: int
    switched: bool = False  # joined by the switch in user space, even without a delay

    def __str__(self) -> str:
        return f"{self.hosts} hosts, {self.rate or 'unshaped'}, {self.delay_ms:g} ms"


class Validation:
    def __init__(self, program: Path, folder: Path, methods: list[str]) -> None:
        self._program, self._folder = program, folder
        self._methods = methods

    @contextmanager
    def cluster(self, network: Network) -> Iterator[Cluster]:
        # With a queue of a third of a second TCP loses nothing.
        with ShapedHosts(
            network.hosts, network.rate, network.delay_ms / 1e3, prefix=PREFIX, queue="300ms",
            burst=BURSTS.get(network.rate, "64kb"), congestion="cubic", window=WINDOW // (network.hosts - 1),
            switched=network.switched,
        ) as hosts:
            yield Cluster(hosts, self._program, self._folder)

    def reductions(
        self, cluster: Cluster, elements: int, repeats: dict[str, int]
    ) -> dict[str, dict[str, Any]]:
        rows = {}
        for name in self._methods:
            result = cluster.run(
                "bench", "reduce", "--elements", elements, "--methods", METHODS[name], "--repeats",
                repeats[name], "--interface", DEVICE,
            )
            rows[name] = result["rows"][0] | {"device": result["device"], "elements": elements}
        return rows

    def unshaped(self, hosts: int, sizes: list[int], switched: bool) -> dict[int, dict[str, dict[str, Any]]]:
        """Reductions as fast as the host is, by elements and method; kernel_ms is what compressing takes."""
        network = Network(None, 0, hosts, switched)
        with self.cluster(network) as cluster:
            link = cluster.run("plan", "--measure")["network"]
            found = {}
            for elements in sizes:
                repeats = max(LEAST_UNSHAPED_REPEATS, UNSHAPED_ELEMENTS // elements)
                rows = self.reductions(cluster, elements, dict.fromkeys(self._methods, repeats))
                planned = self.planned(network, elements, link, rows)
                for name, row in rows.items():
                    row["kernel_ms"] += max(0, row["reduce_ms"] - planned[name])
                found[elements] = rows
        return found

    def planned(
        self, network: Network, elements: int, link: dict[str, Any], kernels: dict[str, dict[str, Any]]
    ) -> dict[str, float]:
        """Milliseconds of a reduction by method."""
        files = {
            "link.json": {"network": link},
            "kernels.json": {"device": "cpu", "elements": elements, "rows": list(kernels.values())},
            "model.json": _model(elements),
        }
        for name, content in files.items():
            (self._folder / name).write_text(json.dumps(content))
        command = [
            self._program, "plan", "--model", self._folder / "model.json", "--workers", network.hosts,
            "--network", self._folder / "link.json", "--kernels", self._folder / "kernels.json", "--bucket",
            "100GB", "--no-overlap", "--tflops", 1, "--methods",
            ",".join(METHODS[name] for name in self._methods), "--json", "-",
        ]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"plan_network: {done.stderr.strip()}")
        rows = {row["method"]: row for row in json.loads(done.stdout)["rows"]}
        # Dense compresses nothing; what it does on the host is to add up.
        dense_host = kernels["dense"]["kernel_ms"] if "dense" in kernels else 0
        return {
            name: rows[METHODS[name]]["compress_ms"] + rows[METHODS[name]]["comm_ms"]
            + (dense_host if name == "dense" else 0)
            for name in self._methods
        }


def _model(elements: int) -> dict[str, Any]:
    """What `bench reduce` reduces, as `plan` reads it: matrices of 1000 x 1000, and a row of the rest."""
    sizes = [1_000_000] * (elements // 1_000_000)
    tensors = [{"name": f"w{i}", "shape": [1000, 1000]} for i in range(len(sizes))]
    if elements % 1_000_000:
        tensors.append({"name": f"w{len(sizes)}", "shape": [1, elements % 1_000_000]})
    return {"name": "matrices", "layers": [{"name": "all", "flops": 1, "tensors": tensors}]}


def _off_wire(row: dict[str, Any]) -> float:
    """How far the device's bytes are from the formula's and the headers', as a share of them."""
    wire, formula = row["interface"], row["formula_sent"] + row["formula_received"]
    headers = HEADER_BYTES * (wire["packets_sent"] + wire["packets_received"])
    return (wire["bytes_sent"] + wire["bytes_received"]) / (formula + headers) - 1


def _repeats(planned: dict[str, float], seconds: float) -> dict[str, int]:
    """As many as fit. The median is of runs of as many steps as hosts, so short steps need many."""
    return {name: max(2, min(MOST_REPEATS, round(1e3 * seconds / max(ms, 1)))) for name, ms in planned.items()}


def validate(args: argparse.Namespace) -> list[dict[str, Any]]:
    cells = []
    with tempfile.TemporaryDirectory(prefix="plan_network_") as folder:
        validation = Validation(args.program.resolve(), Path(folder), args.methods)
        for hosts in args.hosts:
            # The switch that makes a distance is the host's work too.
            by_switched = {
                switched: validation.unshaped(hosts, args.elements, switched)
                for switched in sorted({delay > 0 for delay in args.delays})
            }
            for rate in args.rates:
                for delay in args.delays:
                    network = Network(rate, delay, hosts)
                    unshaped = by_switched[delay > 0]
                    with validation.cluster(network) as cluster:
                        link = cluster.run("plan", "--measure")["network"]
                        _say(f"{network}: {link['bandwidth'] / 1e6:.2f} MB/s, {1e3 * link['latency']:.3f} ms", args)
                        for elements in args.elements:
                            planned = validation.planned(network, elements, link, unshaped[elements])
                            rows = validation.reductions(cluster, elements, _repeats(planned, args.seconds))
                            for name, row in rows.items():
                                host = unshaped[elements][name]["reduce_ms"]
                                cells.append(_cell(network, elements, name, row, planned[name], host))
                                _say(_line(cells[-1]), args)
    return cells


def _cell(
    network: Network, elements: int, method: str, row: dict[str, Any], planned: float, host: float
) -> dict[str, Any]:
    measured = row["reduce_ms"]
    return {
        "hosts": network.hosts, "rate": network.rate, "delay_ms": network.delay_ms, "elements": elements,
        "method": method, "measured_ms": measured, "planned_ms": planned, "error": planned / measured - 1,
        "host_ms": host, "limit": "network" if host < HOST_SHARE * measured else "host",
        "wire_error": _off_wire(row),
    }


def _line(cell: dict[str, Any]) -> str:
    return (
        f"{cell['hosts']:2} {cell['rate']:>8} {cell['delay_ms']:4g} ms {cell['elements'] / 1e6:5g}M "
        f"{cell['method']:9} measured {cell['measured_ms']:10.2f} planned {cell['planned_ms']:10.2f} ms "
        f"{100 * cell['error']:+6.1f} %  {cell['limit']:8} bytes {100 * cell['wire_error']:+5.2f} %"
    )


def _say(text: str, args: argparse.Namespace) -> None:
    if args.json != "-":
        print(text, flush=True)


def summary(cells: list[dict[str, Any]]) -> str:
    network = [cell for cell in cells if cell["limit"] == "network"]
    if not network:
        return "in no cell the network was the limit"
    within = sum(abs(cell["error"]) <= 0.15 for cell in network)
    worst = max(network, key=lambda cell: abs(cell["error"]))
    wire = max(abs(cell["wire_error"]) for cell in cells)
    return (
        f"{len(cells)} cells; the network is the limit in {len(network)}, of which {within} are within 15 %\n"
        f"farthest: {_line(worst)}\nbytes at the devices are within {100 * wire:.1f} % of formulas and headers"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    numbers = lambda kind: lambda text: [kind(one) for one in text.split(",")]  # noqa: E731
    parser.add_argument("--program", type=Path, default=Path("build/release/cli/scalecom"))
    parser.add_argument("--rates", type=numbers(str), default=["100mbit", "1gbit", "10gbit"])
    parser.add_argument("--delays", type=numbers(float), default=[0.0, 1.0, 20.0], help="ms, one way")
    parser.add_argument("--hosts", type=numbers(int), default=[4], help="2 to 8")
    parser.add_argument("--elements", type=numbers(int), default=[1_000_000, 10_000_000, 25_000_000])
    parser.add_argument("--methods", type=numbers(str), default=list(METHODS))
    parser.add_argument("--seconds", type=float, default=4, help="about what a cell may take")
    parser.add_argument("--json", metavar="FILE", help="also write the cells here; - for stdout alone")
    args = parser.parse_args()
    if not args.program.exists():
        parser.error(f"{args.program} is not there: build it, or give --program")
    if any(not 2 <= hosts <= 8 for hosts in args.hosts):
        parser.error("--hosts are 2 to 8")
    if unknown := set(args.methods) - set(METHODS):
        parser.error(f"--methods has {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")
    if reason := why_not():
        sys.exit(f"plan_network: {reason}. It needs root, or the right to make namespaces and network devices "
                 "(CAP_SYS_ADMIN, CAP_NET_ADMIN), with iproute2 and Open MPI.")
    cells = validate(args)
    if args.json == "-":
        print(json.dumps(cells, indent=2))
        return
    if args.json:
        Path(args.json).write_text(json.dumps(cells, indent=2) + "\n", encoding="utf-8")
    print(summary(cells))


if __name__ == "__main__":
    main()
