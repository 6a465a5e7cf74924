"""Hosts on one machine, each with a network link of a given rate: namespaces joined by a bridge, or, where
there is a distance between them, by a switch that keeps what it gets for a while.

Needs root, `ip` and `tc`. Every link is shaped in both directions, with queues as a switch has.
"""

from __future__ import annotations

import re
import subprocess
from types import TracebackType

from delaying_switch import DelayingSwitch, address_of

DEVICE = "link0"  # what a host calls its link


def _run(*command: str, check: bool = True) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def _bytes_a_second(rate: str) -> float:
    """Of what tc calls a rate: "100mbit"."""
    number, prefix = re.fullmatch(r"([0-9.]+)([kmg]?)bit", rate).groups()
    return float(number) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[prefix] / 8


class ShapedHosts:
    """`count` hosts whose links carry `rate`, as tc writes it: "1gbit", "100mbit"; None for all they can.

    Args:
        delay: Seconds that a message takes from one host to another, beside what its bytes take.
        prefix: Of the hosts' names, at most seven characters. Hosts of another one are others: two
            programs may have theirs at the same time.
        burst, queue: What a link lets pass at once, and how long a message may wait for it.
        congestion: TCP's way of sharing a link, where it is not to be the system's: "cubic".
        window: Packets that TCP sends at once, at first and after every pause, where not the system's.
        switched: Whether the switch joins the hosts even without a delay, to see what it takes itself.
    """

    def __init__(
        self, count: int, rate: str | None, delay: float = 0, *, prefix: str = "sch", burst: str = "64kb",
        queue: str = "50ms", congestion: str | None = None, window: int | None = None, switched: bool = False,
    ) -> None:
        self.names = [f"{prefix}{i}" for i in range(count)]
        self.addresses = [f"10.77.0.{i + 1}" for i in range(count)]
        self._prefix, self._rate, self._delay = prefix, rate, delay
        self._switched = switched or delay > 0
        self._shape = ["tbf", "rate", rate or "", "burst", burst, "latency", queue]
        self._tcp = ["congctl", congestion] if congestion else []
        self._tcp += ["initcwnd", str(window), "initrwnd", str(window)] if window else []
        self._switch: DelayingSwitch | None = None

    def __enter__(self) -> ShapedHosts:
        self._remove()
        try:
            self._join()
            for host, name in enumerate(self.names):
                self._add(host, name)
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

    def cut(self, host: int) -> None:
        """Takes a host's link down at the bridge: what is sent is lost, and nobody is told."""
        _run("ip", "link", "set", f"{self.names[host]}-br", "down")

    def mend(self, host: int) -> None:
        _run("ip", "link", "set", f"{self.names[host]}-br", "up")

    def _join(self) -> None:
        if self._switched:
            rate = _bytes_a_second(self._rate) if self._rate else None
            self._switch = DelayingSwitch(len(self.names), self._prefix, self._delay, rate)
            return
        _run("ip", "link", "add", f"{self._prefix}br", "type", "bridge")
        _run("ip", "link", "set", f"{self._prefix}br", "up")

    def _add(self, host: int, name: str) -> None:
        _run("ip", "netns", "add", name)
        if self._switch:
            device = self._switch.devices[host]
            _run("ip", "link", "set", device, "address", address_of(host))
            _run("ip", "link", "set", device, "netns", name, "name", DEVICE)
        else:
            self._add_to_bridge(name)
        _run("ip", "-n", name, "addr", "add", f"{self.addresses[host]}/16", "dev", DEVICE)
        _run("ip", "-n", name, "link", "set", DEVICE, "up")
        _run("ip", "-n", name, "link", "set", "lo", "up")
        if self._rate:
            _run("tc", "-n", name, "qdisc", "add", "dev", DEVICE, "root", *self._shape)
        if self._tcp:
            _run("ip", "-n", name, "route", "change", "10.77.0.0/16", "dev", DEVICE, "proto", "kernel",
                 "scope", "link", "src", self.addresses[host], *self._tcp)

    def _add_to_bridge(self, name: str) -> None:
        outside = f"{name}-br"
        _run("ip", "link", "add", outside, "type", "veth", "peer", "name", DEVICE, "netns", name)
        _run("ip", "link", "set", outside, "master", f"{self._prefix}br", "up")
        if self._rate:
            _run("tc", "qdisc", "add", "dev", outside, "root", *self._shape)

    def _remove(self) -> None:
        for name in self.names:
            _run("ip", "netns", "del", name, check=False)
            _run("ip", "link", "del", f"{name}-br", check=False)
        _run("ip", "link", "del", f"{self._prefix}br", check=False)
        if self._switch:
            self._switch.close()
            self._switch = None
