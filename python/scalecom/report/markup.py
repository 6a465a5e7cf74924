"""HTML in which every string is text unless it was made here: what a run is called cannot become markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


_EMPTY = frozenset({"br"})


def element(tag: str, *content: str, **attributes: str | bool | None) -> Markup:
    """<tag attributes>content</tag>. `class_` is class, and data_x is data-x; an attribute that is None or
    False is left out."""
    written = []
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        written.append(f" {name}" if value is True else f' {name}="{escape(value)}"')
    opening = f"<{tag}{''.join(written)}>"
    return Markup(opening if tag in _EMPTY else f"{opening}{join(content)}</{tag}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    return Markup(_escaped(between).join(_escaped(part) for part in parts))


def _escaped(part: str) -> str:
    return part if isinstance(part, Markup) else escape(part)


def breakable(text: str, after: str) -> Markup:
    """A long name that may be broken after each of these characters."""
    return Markup(escape(text).replace(escape(after), f"{escape(after)}<wbr>"))


def code(method: str) -> Markup:
    """A method with its options."""
    return element("code", breakable(method, ","))


@dataclass
class Table:
    """A table in a box of its own, which scrolls where the page is too narrow for it. The first column heads
    the rows."""

    caption: str
    head: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    words: frozenset[int] = frozenset({0})  # the columns that hold no figures

    def markup(self) -> Markup:
        head = [element("th", cell, scope="col", class_=self._kind(i)) for i, cell in enumerate(self.head)]
        body = [element("tr", *(self._cell(i, cell) for i, cell in enumerate(row))) for row in self.rows]
        table = element("table", element("caption", self.caption), element("thead", element("tr", *head)),
                        element("tbody", *body))
        return element("div", table, class_="scroll", role="region", aria_label=self.caption, tabindex="0")

    def _cell(self, column: int, content: str) -> Markup:
        if column == 0:
            return element("th", content, scope="row")
        return element("td", content, class_=self._kind(column))

    def _kind(self, column: int) -> str | None:
        return None if column in self.words else "number"
