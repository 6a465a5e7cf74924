"""A headless Chromium, spoken to through a pipe in its DevTools protocol: no package stands in between."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 120.0  # seconds, for a machine that others use too


def find() -> str | None:
    """The browser's program: SCALECOM_CHROMIUM, or what the system has."""
    named = os.environ.get("SCALECOM_CHROMIUM")
    return named or next((found for found in map(shutil.which, _NAMES) if found), None)


class Browser:
    """One tab, and all that it has complained of or asked the network for."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to_browser = to_browser
        self._from_browser = from_browser
        self._received = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = False
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, page: Path, *, width: int = 1280, height: int = 900, scheme: str = "light",
             phone: bool = False) -> None:
        """Opens a page that says when it is drawn."""
        self.complaints.clear()
        self.requests.clear()
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                   deviceScaleFactor=2 if phone else 1, mobile=phone)
        self._call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.prefer(scheme)
        self._loaded = False
        self._call("Page.navigate", url=page.resolve().as_uri())
        end = time.monotonic() + _PATIENCE
        while not self._loaded:
            self._note(self._receive(end))
        self.wait("document.documentElement.dataset.drawn !== undefined")

    def prefer(self, scheme: str) -> None:
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression: str) -> Any:
        done = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"].get("exception", done["exceptionDetails"]))
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise AssertionError(f"never came true: {condition}; complaints: {self.complaints}")
            time.sleep(0.05)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        shot = self._call("Page.captureScreenshot", captureBeyondViewport=whole, **(
            {"clip": self._whole_page()} if whole else {}))
        path.write_bytes(base64.b64decode(shot["data"]))

    def _whole_page(self) -> dict[str, float]:
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _PATIENCE
        while True:
            answer = self._receive(end)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _receive(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._from_browser], [], [], max(0, end - time.monotonic()))
            piece = os.read(self._from_browser, 1 << 20) if ready else b""
            if not piece:
                raise AssertionError("the browser has ended" if ready else "the browser does not answer")
            self._received += piece
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        what = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.consoleAPICalled" if what["type"] in ("error", "warning", "assert"):
                self.complaints.append(f"console: {what['args']}")
            case "Runtime.exceptionThrown":
                self.complaints.append(f"exception: {what['exceptionDetails']}")
            case "Log.entryAdded" if what["entry"]["level"] in ("error", "warning"):
                self.complaints.append(f"log: {what['entry']['text']}")
            case "Network.requestWillBeSent":
                self.requests.append(what["request"]["url"])


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Browser]:
    """`profile` is a folder of its own."""
    browser_reads, we_write = os.pipe()
    we_read, browser_writes = os.pipe()
    # The protocol's descriptors are 3 and 4: ours are to be others, so that bash can put them there.
    given = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (browser_reads, browser_writes)]
    os.close(browser_reads)
    os.close(browser_writes)
    start = ["bash", "-c", f'exec "$@" 3<&{given[0]} 4>&{given[1]}', "bash", program]
    # Root and containers have no sandbox; the page is ours.
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
               "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
               f"--user-data-dir={profile}"]
    process = subprocess.Popen([*start, *options, "about:blank"], pass_fds=given, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for end in given:
        os.close(end)
    try:
        yield Browser(we_write, we_read)
    finally:
        os.close(we_write)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(we_read)
