"""Hosts on one machine, each with a network link of a given rate: namespaces joined by a bridge.

Needs root, `ip` and `tc`. Every link is shaped in both directions, with short queues, as a switch has.
"""

from __future__ import annotations

import subprocess
from types import TracebackType

BRIDGE = "scbr0"
DEVICE = "link0"  # what a host calls its link


def _run(*command: str, check: bool = True) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


class ShapedHosts:
    """`count` hosts whose links carry `rate`, as tc writes it: "1gbit", "100mbit"."""

    def __init__(self, count: int, rate: str) -> None:
        self.names = [f"sch{i}" for i in range(count)]
        self.addresses = [f"10.77.0.{i + 1}" for i in range(count)]
        self._rate = rate

    def __enter__(self) -> ShapedHosts:
        self._remove()
        try:
            _run("ip", "link", "add", BRIDGE, "type", "bridge")
            _run("ip", "link", "set", BRIDGE, "up")
            for name, address in zip(self.names, self.addresses, strict=True):
                self._add(name, address)
        except OSError:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def command(self, host: int, command: list[str]) -> list[str]:
        """What runs `command` at a host."""
        return ["ip", "netns", "exec", self.names[host], *command]

    def _add(self, name: str, address: str) -> None:
        outside = f"{name}-br"
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", outside, "type", "veth", "peer", "name", DEVICE, "netns", name)
        _run("ip", "link", "set", outside, "master", BRIDGE, "up")
        _run("ip", "-n", name, "addr", "add", f"{address}/16", "dev", DEVICE)
        _run("ip", "-n", name, "link", "set", DEVICE, "up")
        _run("ip", "-n", name, "link", "set", "lo", "up")
        shape = ["root", "tbf", "rate", self._rate, "burst", "64kb", "latency", "50ms"]
        _run("tc", "qdisc", "add", "dev", outside, *shape)
        _run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", DEVICE, *shape)

    def _remove(self) -> None:
        for name in self.names:
            _run("ip", "netns", "del", name, check=False)
            _run("ip", "link", "del", f"{name}-br", check=False)
        _run("ip", "link", "del", BRIDGE, check=False)
