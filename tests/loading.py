"""What the loader makes of a program: whose functions are called."""

from __future__ import annotations

import os
import re
import subprocess

BINDING = re.compile(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(\S+)'")


def foreign_filesystem(command: list[str], caller: str) -> list[tuple[str, str]]:
    """The functions of std::filesystem that `caller`, a file that `command` loads, takes from elsewhere
    than itself and libstdc++, each as (whose, symbol). libtorch exports an older one, which crashes
    beside another compiler's."""
    environment = os.environ | {"LD_DEBUG": "bindings", "LD_BIND_NOW": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    found = (match.groups() for match in map(BINDING.search, done.stderr.splitlines()) if match)
    taken = [(owner, symbol) for by, owner, symbol in found if by == caller and "NSt10filesystem" in symbol]
    # Or a static one is in it, as a second beside libtorch's; or the loader writes otherwise.
    assert any("libstdc++" in owner for owner, _ in taken), f"{caller} has no std::filesystem from a shared libstdc++"
    return [(owner, symbol) for owner, symbol in taken if owner != caller and "libstdc++" not in owner]
