"""Figures in words, the same everywhere. A figure that is missing is a dash."""

from __future__ import annotations

from scalecom.report.pairs import Difference

MISSING = "–"
OVER_SENTENCES = ("An interval in brackets is of one seed, over the sentences of the test set (95%, paired "
                  "bootstrap); what another seed would give is not in it.")
BETWEEN_GROUPS = "With groups, bytes are those between groups."
_PREFIXES = ("", "k", "M", "G", "T", "P")


def number(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:,.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:+,.{digits}f}".replace("-", "−")


def times(value: float | None, digits: int = 1) -> str:
    return MISSING if value is None else f"{number(value, digits)}×"


def percent(share: float | None) -> str:
    return MISSING if share is None else f"{number(100 * share, 1)} %"


def scaled(value: float | None, unit: str) -> str:
    """With three digits and a prefix: 29.9 kB."""
    if value is None:
        return MISSING
    prefix = 0
    while abs(value) >= 999.5 and prefix + 1 < len(_PREFIXES):
        value /= 1000
        prefix += 1
    return f"{value:.3g} {_PREFIXES[prefix]}{unit}".rstrip()


def bytes_text(value: float | None) -> str:
    return scaled(value, "B")


def duration(seconds: float | None) -> str:
    if seconds is None:
        return MISSING
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"


def count(how_many: int, what: str) -> str:
    return f"{how_many:,} {what}{'' if how_many == 1 else 's'}"


def difference(found: Difference | None) -> str:
    """An interval only where there are runs, or sentences, to tell it from."""
    if found is None:
        return MISSING
    if found.half_width is not None:
        return f"{signed(found.mean)} ± {number(found.half_width)}"
    if found.over_sentences is not None:
        low, high = found.over_sentences
        return f"{signed(found.mean)} [{signed(low)}, {signed(high)}]"
    return signed(found.mean)


def metric(name: str) -> str:
    """For an axis or the head of a column."""
    return name[:1].upper() + name[1:] if name else "Test metric"


def is_error(name: str) -> bool:
    """Whether less of this metric is better."""
    return any(word in name.lower() for word in ("error", "loss"))


def of_metric(what: str, name: str) -> str:
    """What is said of a difference in this metric: one with a plus is no gain in an error."""
    return f"{what} (less is better)" if is_error(name) else what
