"""JSON that may be damaged: whatever is wrong with a file becomes one line that names it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


# No figure comes near it, and what is computed from smaller ones is finite.
_LARGEST = 1e100


class Unreadable(Exception):
    """What is wrong with a path, in one line."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} {why}")


class Fields:
    """An object of a file. A value of another kind than asked for is damage. One that is missing or null
    is None, or damage where there must be one; a number that is not finite counts as missing."""

    def __init__(self, path: Path, values: Any, where: str = "") -> None:
        self.path = path
        self._where = where
        if not isinstance(values, dict):
            raise self._damage("it holds no JSON object")
        self._values: dict[str, Any] = values

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def has(self, *keys: str) -> bool:
        """Whether all are there, be it as null."""
        return all(key in self._values for key in keys)

    def keys(self) -> list[str]:
        return list(self._values)

    def text(self, key: str) -> str:
        return self._needed(key, self.text_or_none(key))

    def text_or_none(self, key: str) -> str | None:
        return self._of_kind(key, str, "text")

    def number(self, key: str) -> float:
        return self._needed(key, self.number_or_none(key))

    def number_or_none(self, key: str) -> float | None:
        return self._finite(key, self._values.get(key))

    def whole(self, key: str) -> int:
        return self._needed(key, self.whole_or_none(key))

    def whole_or_none(self, key: str) -> int | None:
        number = self.number_or_none(key)
        if number is None:
            return None
        if number != int(number):
            raise self._damage(f"'{key}' is no whole number")
        # As it was written: large ones, such as seeds, are no floats.
        return int(self._values[key])

    def flag(self, key: str) -> bool:
        return bool(self._of_kind(key, bool, "true or false"))

    def numbers(self, key: str) -> list[float]:
        found = self._of_kind(key, list, "a list") or []
        return [x for x in (self._finite(key, value) for value in found) if x is not None]

    def interval(self, key: str) -> tuple[float, float] | None:
        """Its two ends."""
        found = self.numbers(key)
        return (found[0], found[1]) if len(found) == 2 else None

    def object(self, key: str) -> Fields | None:
        found = self._of_kind(key, dict, "an object")
        return None if found is None else Fields(self.path, found, f"{self._where}{key}: ")

    def objects(self, key: str) -> list[Fields]:
        found = self._of_kind(key, list, "a list") or []
        return [Fields(self.path, value, f"{self._where}{key} {i + 1}: ") for i, value in enumerate(found)]

    def _of_kind(self, key: str, kind: type, called: str) -> Any:
        value = self._values.get(key)
        if value is not None and not isinstance(value, kind):
            raise self._damage(f"'{key}' is not {called}")
        return value

    def _finite(self, key: str, value: Any) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._damage(f"'{key}' is no number")
        return float(value) if abs(value) < _LARGEST else None

    def _needed(self, key: str, value: Any) -> Any:
        if value is None:
            raise self._damage(f"'{key}' is missing")
        return value

    def _damage(self, why: str) -> Unreadable:
        return Unreadable(self.path, f"is damaged: {self._where}{why}")


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(path, f"cannot be read: {error.strerror}") from None


def read_object(path: Path) -> Fields:
    try:
        return Fields(path, _parse(_read(path).decode()))
    except ValueError:
        raise Unreadable(path, "is damaged: it is not JSON") from None


def read_lines(path: Path) -> Iterator[Fields]:
    """An object a line; a last line that was cut short is left out."""
    lines = _read(path).split(b"\n")
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            values = _parse(line.decode())
        except ValueError:
            if i + 1 == len(lines):
                return
            raise Unreadable(path, f"is damaged: line {i + 1} is not JSON") from None
        yield Fields(path, values, f"line {i + 1}: ")
