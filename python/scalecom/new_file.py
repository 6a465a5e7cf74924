"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from os import PathLike


def write(path: str | PathLike[str], text: str) -> None:
    """Puts `text` at `path`, in UTF-8; what has no place there becomes a question mark.

    It is written beside it, under a name that cannot be guessed, and then renamed. Where that fails, what
    stood at `path` is as it was, and nothing else is left.
    """
    target = os.fspath(path)
    if os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)):
        raise OSError(f"'{target}' is no plain file, and is not replaced by one")
    new = os.path.join(os.path.dirname(target), f".scalecom-{secrets.token_hex(8)}.tmp")
    # "x" neither follows a link nor opens what another has put there; the mode is that of any new file.
    file = open(new, "x", encoding="utf-8", errors="replace")
    try:
        with file:
            file.write(text)
        os.replace(new, target)
    except BaseException:
        os.unlink(new)
        raise
