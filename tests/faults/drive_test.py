"""A driver that can hurt nothing does not pass: it says what the machine lacks."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from job import environment


def drive(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(Path(__file__).parent / "drive.py"), "no program", "--log", str(folder / "log")]
    # Where nothing is installed.
    return subprocess.run([*command, *more], capture_output=True, text=True, timeout=60, check=False,
                          env=environment() | {"PATH": str(folder)})


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="scalecom_drive_") as name:
        done = drive(Path(name), "--faults", "2", "--only", "mpirun")
        assert done.returncode == 1, done
        assert "left out: mpirun: mpirun is not installed" in done.stdout, done
        assert done.stderr.startswith("skipped: 0 of 2 faults were met"), done
        assert "mpirun is not installed" in done.stderr, done
        done = drive(Path(name), "--faults", "0", "--only", "mpirun")
        assert done.returncode == 0 and "skipped" not in done.stderr, done
    print("ok")


if __name__ == "__main__":
    main()
