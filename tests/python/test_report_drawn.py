"""The report as Chromium draws it: every plot, in light and dark, on a desk and on a phone, from a file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import chromium
import pytest
from chromium import Browser
from report_sources import write_everything, write_hostile, write_run

pytestmark = [pytest.mark.cpu("the report needs no device"),
              pytest.mark.skipif(chromium.find() is None, reason="there is no Chromium")]
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844, "phone": True}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium.find()
    assert program is not None
    with chromium.browser(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def _write(folder: Path, paths: list[Path]) -> Path:
    pytest.importorskip("plotly")
    out = folder / "report.html"
    subprocess.run([sys.executable, "-m", "scalecom.report", *map(str, paths), "--out", str(out)], check=True)
    return out


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return _write(folder, write_everything(folder))


def _expect_drawn(browser: Browser, page: Path) -> None:
    """Every plot is there, with traces in it, and nobody has complained."""
    traces = browser.evaluate("""[...document.querySelectorAll('.plot')].map((plot) =>
        plot.querySelectorAll('svg .trace path, svg .bars path').length)""")
    assert len(traces) > 5 and all(count > 0 for count in traces), traces
    assert browser.complaints == []
    assert browser.requests == [page.resolve().as_uri()]


def _expect_no_sideways_scroll(browser: Browser, width: int) -> None:
    # innerWidth says nothing: a phone's grows with the page.
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def _contrasts(browser: Browser) -> dict[str, float]:
    """Of text and plots with what is behind them, as the Web's guidelines count it."""
    return browser.evaluate("""(() => {
      const probe = document.body.appendChild(document.createElement('i'));
      const light = (name) => {
        probe.style.color = `var(--${name})`;
        const part = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map((one) => one / 255)
          .map((one) => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
        return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
      };
      const contrast = (one, other) => {
        const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
      };
      const series = [...document.styleSheets[0].cssRules[0].style].filter((name) => name.startsWith('--series'));
      const found = {};
      for (const name of ['ink', 'muted', 'accent', ...series.map((one) => one.slice(2))])
        found[name] = Math.min(contrast(name, 'surface'), contrast(name, 'page'));
      return found;
    })()""")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
def test_it_draws_without_complaint_or_network(browser: Browser, whole: Path, scheme: str, screen: dict) -> None:
    browser.open(whole, scheme=scheme, **screen)
    _expect_drawn(browser, whole)
    _expect_no_sideways_scroll(browser, screen["width"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_shown_can_be_read(browser: Browser, whole: Path, scheme: str) -> None:
    browser.open(whole, scheme=scheme)
    contrasts = _contrasts(browser)
    assert len(contrasts) > 10
    for name, contrast in contrasts.items():
        assert contrast >= (3 if name.startswith("series") else 4.5), (name, contrast)


def test_the_theme_is_the_systems_until_it_is_chosen(browser: Browser, whole: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    line = """getComputedStyle(document.querySelector('.plot .xgrid, .plot .ygrid, .plot path.crisp')).stroke"""
    browser.open(whole, scheme="light")
    light = browser.evaluate(f"[{ground}, {line}]")
    browser.prefer("dark")
    browser.wait(f"{line} !== {light[1]!r}")
    dark = browser.evaluate(f"[{ground}, {line}]")
    assert dark[0] != light[0]
    browser.evaluate("document.getElementById('theme').click()")
    browser.wait(f"{line} === {light[1]!r}")
    assert browser.evaluate(ground) == light[0]
    assert browser.complaints == []


def test_views_and_legends_change_what_is_drawn(browser: Browser, whole: Path) -> None:
    browser.open(whole)
    browser.evaluate("""window.figure = [...document.querySelectorAll('figure')].find((one) =>
        one.querySelectorAll('.views button').length === 4)""")
    title = "figure.querySelector('.ytitle').textContent"
    assert browser.evaluate(title) == "Test accuracy (%)"
    browser.evaluate("figure.querySelectorAll('.views button')[2].click()")
    browser.wait(f"{title}.startsWith('Training loss')")
    assert browser.evaluate("[...figure.querySelectorAll('.views button')].map((b) => b.ariaPressed)") == [
        "false", "false", "true", "false"]
    drawn = "figure.querySelectorAll('.plot .trace').length"
    before = browser.evaluate(drawn)
    browser.evaluate("figure.querySelector('.legend button').click()")
    browser.wait(f"{drawn} < {before}")
    browser.evaluate("""window.steps = document.querySelector('select.views');
        steps.value = '3'; steps.dispatchEvent(new Event('change'))""")
    browser.wait("steps.closest('figure').querySelector('.plot').data[1].x[0] === -4")
    assert browser.complaints == []


def test_what_is_hostile_is_only_shown(browser: Browser, tmp_path: Path) -> None:
    long = write_run(tmp_path / ("l" * 200), "x" * 300, task="t" * 150)
    page = _write(tmp_path, [*write_hostile(tmp_path), long])
    browser.open(page, **PHONE)
    _expect_drawn(browser, page)
    _expect_no_sideways_scroll(browser, PHONE["width"])
    assert browser.evaluate("window.harmed === undefined")
    assert not browser.evaluate("document.querySelectorAll('img, b, a:not([href^=\"#\"])').length")
    shown = browser.evaluate("document.body.innerText")
    assert "</script><script>window.harmed=1</script>" in shown and "{{css}}" in shown
    legend = browser.evaluate("[...document.querySelectorAll('.legend button')].map((b) => b.textContent).join()")
    ticks = browser.evaluate("[...document.querySelectorAll('.ytick text')].map((t) => t.textContent).join()")
    titles = browser.evaluate("[...document.querySelectorAll('.ytitle')].map((t) => t.textContent).join()")
    assert all("<img src=x" in text for text in (legend, ticks, titles)) and "&amp;" in titles
