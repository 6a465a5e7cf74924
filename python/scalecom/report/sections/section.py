"""A part of the page, and the figures that are put into it."""

from __future__ import annotations

from dataclasses import dataclass, field

from scalecom.report.figures.figure import Figure
from scalecom.report.markup import Markup, element

# More views than these would be several rows of buttons.
_MOST_BUTTONS = 5


@dataclass(frozen=True)
class Section:
    name: str  # of its anchor
    title: str
    body: Markup

    def markup(self) -> Markup:
        return element("section", element("h2", self.title), self.body, id=self.name)


@dataclass
class Canvas:
    """All figures of a page, in the order in which it shows them."""

    figures: list[Figure] = field(default_factory=list)

    def draw(self, figure: Figure | None) -> Markup:
        """The place that assets/page.js draws it in."""
        if figure is None:
            return Markup()
        number = str(len(self.figures))
        self.figures.append(figure)
        plot = element("div", class_="plot", data_figure=number, role="img",
                       aria_label=f"Plot: {figure.title}. {figure.about}".strip(),
                       style=f"height:{figure.height}px")
        legend = element("ul", class_="legend", aria_label="Legend: press to hide or show")
        about = element("figcaption", figure.about) if figure.about else ""
        head = element("div", element("h3", figure.title), _views(figure), class_="figure-head")
        return element("figure", head, plot, legend if figure.legend else "", about)


def _views(figure: Figure) -> str:
    labels = [view.label for view in figure.views]
    if len(labels) == 1:
        return ""
    if len(labels) > _MOST_BUTTONS:
        options = [element("option", label, value=str(i)) for i, label in enumerate(labels)]
        return element("label", f"{figure.choice} ", element("select", *options, class_="views"))
    buttons = [element("button", label, type="button", aria_pressed="true" if i == 0 else "false")
               for i, label in enumerate(labels)]
    return element("div", *buttons, class_="views", role="group", aria_label=figure.choice)
