"""Differences over runs of the same seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

# Student's t for 95% on both sides, by degrees of freedom from 1 on; the last for all further. Of what a
# reproduction's table has, its intervals are shown; these are for runs without one. train/recipes/table.cc
# has the same, and a test compares them.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
            2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences and half the width of its 95% interval over seeds; one pair has none."""

    mean: float
    pairs: int
    half_width: float | None
    # Of one pair whose texts were scored side by side: the 95% interval over the test set's sentences. What
    # another seed would give is not in it.
    over_sentences: tuple[float, float] | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of either kind."""
        if self.half_width is None:
            return self.over_sentences
        return self.mean - self.half_width, self.mean + self.half_width


def difference(values: Mapping[int, float], baseline: Mapping[int, float]) -> Difference | None:
    """By seed; None where no seed is in both."""
    found = [value - baseline[seed] for seed, value in values.items() if seed in baseline]
    if not found:
        return None
    mean = math.fsum(found) / len(found)
    if len(found) == 1:
        return Difference(mean, 1, None)
    deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in found) / (len(found) - 1))
    student = _STUDENT[min(len(found) - 1, len(_STUDENT)) - 1]
    return Difference(mean, len(found), student * deviation / math.sqrt(len(found)))
