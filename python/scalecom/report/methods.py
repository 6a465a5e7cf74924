"""How methods are named and told apart: short labels, and the same look wherever one is drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

# Each has a colour of its own in assets/page.css; whatever else there is shares one.
_FAMILIES = frozenset({"dense", "half", "scalecom", "weighted", "topk", "gtopk", "dgc", "adacomp",
                       "powersgd", "sketched_sgd"})
_Key = TypeVar("_Key", bound=Hashable)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True)
class Look:
    """What a method, or a recipe, is called and drawn as in one figure."""

    label: str
    family: str
    variant: int  # among those of its family

    @property
    def colour(self) -> str:
        # A second round of dashes is drawn in another colour.
        is_own = self.family in _FAMILIES and self.variant // len(_DASHES) % 2 == 0
        return f"@series-{self.family if is_own else 'other'}"

    @property
    def dash(self) -> str:
        return _DASHES[self.variant % len(_DASHES)]


def family(method: str) -> str:
    return method.split(",", 1)[0]


def labels(methods: Sequence[str]) -> dict[str, str]:
    """By method: its name and, where that is not enough, the options in which it differs from others of
    that name."""
    by_family: dict[str, list[str]] = defaultdict(list)
    for method in dict.fromkeys(methods):
        by_family[family(method)].append(method)
    found = {}
    for name, members in by_family.items():
        options = [member.split(",")[1:] for member in members]
        shared = set.intersection(*map(set, options))
        for member, own in zip(members, options, strict=True):
            found[member] = ", ".join([name, *(option for option in own if option not in shared)])
    return found


def looks(named: Iterable[tuple[_Key, str, str]]) -> dict[_Key, Look]:
    """Of (key, label, method) triples, by key. Dense comes first and ScaleCom next; others keep their order."""
    order = {"dense": 0, "half": 1, "scalecom": 2}
    ranked = sorted(dict.fromkeys(named), key=lambda one: order.get(family(one[2]), len(order)))
    counts: dict[str, int] = defaultdict(int)
    found: dict[_Key, Look] = {}
    for key, label, method in ranked:
        if key not in found:
            name = family(method)
            found[key] = Look(label, name, counts[name])
            counts[name] += 1
    return found


def looks_of_methods(methods: Sequence[str]) -> dict[str, Look]:
    short = labels(methods)
    return looks((method, short[method], method) for method in methods)
