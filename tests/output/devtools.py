"""A real browser driven from a test: over two pipes, in the browser's own protocol, without any other program."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
)

# The browser reads from descriptor 3 and writes to 4.
_LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
_ABOVE_OTHERS = 50


NAVIGATED = "Inspected target navigated"


class NavigatedError(AssertionError):
    """The page went to another one before it could answer."""


class Chromium:
    """A headless browser, a process that is asked over two pipes. Its profile is in `folder`."""

    def __init__(self, program: str, folder: Path) -> None:
        mine, theirs = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, _ABOVE_OTHERS) for end in (mine[0], theirs[1])]
        self._number = 0
        self._rest = b""
        options = [*_OPTIONS, f"--user-data-dir={folder / 'profile'}", "--window-size=1440,1000"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, *map(str, ends), program, *options, "about:blank"],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._out, self._in = mine[1], theirs[0]
        for end in (*ends, mine[0], theirs[1]):
            os.close(end)

    def close(self) -> None:
        try:
            self.ask("Browser.close")
            self._process.wait(PATIENCE_S)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def ask(
        self, method: str, session: str = "", note: Callable[[dict[str, Any]], None] | None = None, **params: Any
    ) -> dict[str, Any]:
        """What the browser answers; `note` takes what it tells of the session meanwhile."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    away = answer["error"]["message"].startswith(NAVIGATED)
                    raise (NavigatedError if away else AssertionError)(answer)
                result: dict[str, Any] = answer["result"]
                return result
            if note is not None and answer.get("sessionId") == session:
                note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], PATIENCE_S)
            assert ready, "the browser does not answer"
            more = os.read(self._in, 1 << 16)
            assert more, "the browser is gone"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Browser:
    """One page in a headless browser. `console` and `requests` gather what it writes and asks for.

    It shares nothing with other pages of the browser.
    """

    def __init__(self, chromium: Chromium, *, width: int = 1440, height: int = 1000, scripts: bool = True) -> None:
        self.console: list[str] = []
        self.requests: list[str] = []
        self._chromium = chromium
        self._context = chromium.ask("Target.createBrowserContext")["browserContextId"]
        target = chromium.ask("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = chromium.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")
        self.size(width, height)
        if not scripts:
            self._ask("Emulation.setScriptExecutionDisabled", value=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._chromium.ask("Target.disposeBrowserContext", browserContextId=self._context)

    def size(self, width: int, height: int, ratio: float = 1.0) -> None:
        """The window's size in CSS pixels."""
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False
        )

    def dark(self, *, on: bool) -> None:
        """What the system says it prefers."""
        value = "dark" if on else "light"
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def media(self, name: str) -> None:
        """Show the page as on `print` or `screen`."""
        self._ask("Emulation.setEmulatedMedia", media=name)

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded."""
        self._ask("Page.navigate", url="about:blank")
        self._ask("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, code: str) -> Any:
        """What an expression of the page is worth."""
        answer = self._ask("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, code: str) -> None:
        """Wait until an expression holds."""
        patience = time.monotonic() + PATIENCE_S
        while not self._holds(code):
            assert time.monotonic() < patience, f"never came true: {code}"
            time.sleep(0.01)

    def _holds(self, code: str) -> bool:
        with suppress(NavigatedError):
            return bool(self.value(code))
        return False

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """`mousePressed`, `mouseReleased`, `mouseMoved` or `mouseWheel` at a place of the window."""
        button = {"button": "left", "clickCount": 1} if kind in ("mousePressed", "mouseReleased") else {}
        self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **{**button, **more})

    def click(self, x: float, y: float) -> None:
        """Press and release."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)

    def drag(self, x: float, y: float, to: float, *, shift: bool = False) -> None:
        """Press, move sideways in steps, release."""
        keys = {"modifiers": 8} if shift else {}
        self.mouse("mouseMoved", x, y, **keys)
        self.mouse("mousePressed", x, y, **keys)
        for step in range(1, 6):
            self.mouse("mouseMoved", x + (to - x) * step / 5, y, buttons=1, button="left", **keys)
        self.mouse("mouseReleased", to, y, **keys)

    def fingers(self, *steps: list[tuple[float, float]]) -> None:
        """Fingers go down at the places of the first step, over those of the others, and up; each step is one frame."""
        for number, step in enumerate(steps):
            points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(step)]
            self._ask("Input.dispatchTouchEvent", type="touchMove" if number else "touchStart", touchPoints=points)
            self.value("new Promise((drawn) => requestAnimationFrame(() => drawn()))")
        self._ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def key(self, key: str) -> None:
        """Press a key, named as in a keyboard event."""
        text = {"text": key} if len(key) == 1 else {}
        self._ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"])

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self._chromium.ask(method, self._session, self._note, **params)

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(each.get("value", each)) for each in params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
