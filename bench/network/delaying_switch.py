"""A switch in user space that keeps every frame for a while: distance, for hosts of one machine.

For kernels whose tc has no `netem`. Hosts are tap devices. Needs root and /dev/net/tun.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import struct
import threading
import time

_TUNSETIFF, _TUNSETOFFLOAD, _TUNSETVNETHDRSZ = 0x400454CA, 0x400454D0, 0x400454D8
_TAP, _NO_PACKET_INFO, _OFFLOAD_HEADER = 0x0002, 0x1000, 0x4000
_CHECKSUM, _TSO4, _TSO6 = 0x01, 0x02, 0x04
_HEADER = struct.Struct("=BBHHHH")  # flags, kind of offload, header bytes, segment bytes, checksum's place
_LONGEST = 1 << 17
_BROADCAST = b"\xff" * 6


def address_of(port: int) -> str:
    """The Ethernet address of a port's host."""
    return f"02:00:00:00:00:{port + 1:02x}"


class DelayingSwitch:
    """`count` ports, each a tap device. A frame leaves for its port `delay` seconds after it came, at no
    more than `rate` bytes a second; what a port has not taken yet waits."""

    def __init__(self, count: int, prefix: str, delay: float, rate: float | None) -> None:
        self.devices = [f"{prefix}{i}-tap" for i in range(count)]
        self._delay, self._rate = delay, rate
        self._files = [self._open(name) for name in self.devices]
        self._ports = {bytes.fromhex(address_of(i).replace(":", "")): i for i in range(count)}
        self._free = [0.0] * count  # when the wire to a port is
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._frames = 0
        self._ends, self._end = os.pipe()
        self._thread = threading.Thread(target=self._forward, daemon=True)
        self._thread.start()

    def close(self) -> None:
        os.write(self._end, b"x")
        self._thread.join()
        for file in (*self._files, self._ends, self._end):
            os.close(file)

    @staticmethod
    def _open(name: str) -> int:
        file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        flags = _TAP | _NO_PACKET_INFO | _OFFLOAD_HEADER
        fcntl.ioctl(file, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        fcntl.ioctl(file, _TUNSETVNETHDRSZ, struct.pack("i", _HEADER.size))
        # Long TCP messages pass as one frame, as they do between network cards.
        fcntl.ioctl(file, _TUNSETOFFLOAD, _CHECKSUM | _TSO4 | _TSO6)
        return file

    def _forward(self) -> None:
        ports = {file: port for port, file in enumerate(self._files)}
        while True:
            due = self._waiting[0][0] - time.monotonic() if self._waiting else 1.0
            # Not poll(), which waits for whole milliseconds: a frame could be one late.
            ready, _, _ = select.select((*self._files, self._ends), (), (), max(0.0, due))
            for file in ready:
                if file == self._ends:
                    return
                self._take(ports[file], file)
            self._give()

    def _take(self, port: int, file: int) -> None:
        for _ in range(32):
            try:
                frame = os.read(file, _LONGEST)
            except OSError:  # nothing more, or the host is gone
                return
            now = time.monotonic()
            to = frame[_HEADER.size : _HEADER.size + 6]
            known = self._ports.get(to)
            for other in range(len(self._files)) if known is None else (known,):
                if other != port:
                    self._keep(now, other, frame)

    def _keep(self, now: float, port: int, frame: bytes) -> None:
        leaves = max(now + self._delay, self._free[port])
        if self._rate:
            self._free[port] = leaves + _bytes_on_wire(frame) / self._rate
        self._frames += 1
        heapq.heappush(self._waiting, (leaves, self._frames, port, frame))

    def _give(self) -> None:
        now = time.monotonic()
        while self._waiting and self._waiting[0][0] <= now:
            _, _, port, frame = heapq.heappop(self._waiting)
            try:
                os.write(self._files[port], frame)
            except OSError:
                pass  # a host that is down loses what comes, as on any wire


def _bytes_on_wire(frame: bytes) -> int:
    """As the frames that a network card makes of a long one, each with headers of its own."""
    _, kind, header, segment, _, _ = _HEADER.unpack_from(frame)
    length = len(frame) - _HEADER.size
    if not kind or not segment:
        return length
    return length + header * ((length - header - 1) // segment)
