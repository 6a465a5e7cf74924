"""python -m scalecom.report PATH...: what runs came to, as one HTML file."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from scalecom import __version__, new_file
from scalecom.report.page import page
from scalecom.report.sources import Unreadable, find

_PROGRAM = "python -m scalecom.report"
_USAGE = 2
_EPILOG = """\
A path is a run's folder (scalecom train), a comparison's (compare), a reproduction's (reproduce), a folder of
these, or a file that train, compare, reproduce or plan wrote with --json. What it is shows in its content.

example:
  python -m scalecom.report runs/*
  python -m scalecom.report runs/table1 plan.json --out table1.html"""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM, description="Writes one HTML file, which needs no network, of what runs came to.",
        epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a run, or what else is shown")
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE",
                        help="the file to write (report.html)")
    return parser.parse_args()


def _refuse(why: str) -> int:
    # A path may hold anything but a line's end here.
    print(f"{_PROGRAM}: {' '.join(why.splitlines())}", file=sys.stderr)
    return _USAGE


def main() -> int:
    options = _arguments()
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError:
        return _refuse("plotly is missing; install it, in scalecom's folder: pip install '.[report]'")
    # A former report may lie among what it is made from.
    out = os.path.realpath(options.out)
    paths = [path for path in options.paths if os.path.realpath(path) != out]
    if not paths:
        return _refuse(f"{options.out} is the report itself; give the runs that it is to show")
    try:
        new_file.write(options.out, page(find(paths), get_plotlyjs(), __version__))
    except Unreadable as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{options.out} cannot be written: {error.strerror}; choose another --out")
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
