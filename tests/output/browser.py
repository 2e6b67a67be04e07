"""A real browser driven from a test: Chromium of the system, by Playwright."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from playwright.sync_api import Error, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from playwright.sync_api import Page

P = ParamSpec("P")
T = TypeVar("T")
PATIENCE_S = 60.0
OPTIONS = ["--disable-gpu", "--hide-scrollbars"]
NAVIGATED = "navigated"
"""What an error says of a page that went to another one before it could answer."""


class Chromium:
    """A headless browser. Playwright's event loop has a thread of its own: the tests of notebooks have another loop."""

    def __init__(self, program: str) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._playwright = self.do(sync_playwright().start)
        self.browser = self.do(
            self._playwright.chromium.launch, executable_path=program, args=OPTIONS, chromium_sandbox=False
        )

    def do(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Call this in the thread of the browser."""
        return self._thread.submit(work, *args, **named).result()

    def close(self) -> None:
        self.do(self.browser.close)
        self.do(self._playwright.stop)
        self._thread.shutdown()


class Browser:
    """One page in a headless browser. `console` and `requests` gather what it writes and asks for.

    It shares nothing with other pages of the browser.
    """

    def __init__(self, chromium: Chromium, *, width: int = 1440, height: int = 1000, scripts: bool = True) -> None:
        self.console: list[str] = []
        self.requests: list[str] = []
        self.do = chromium.do
        self._context = self.do(chromium.browser.new_context, java_script_enabled=scripts)
        self.page: Page = self.do(self._context.new_page)
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self._protocol = self.do(self._context.new_cdp_session, self.page)
        self.size(width, height)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.do(self._context.close)

    def size(self, width: int, height: int, ratio: float = 1.0) -> None:
        """The window's size in CSS pixels."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False
        )

    def dark(self, *, on: bool) -> None:
        """What the system says it prefers."""
        self.do(self.page.emulate_media, color_scheme="dark" if on else "light")

    def media(self, name: str) -> None:
        """Show the page as on `print` or `screen`."""
        self.do(self.page.emulate_media, media=name)  # type: ignore[arg-type]

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded."""
        self.do(self.page.goto, "about:blank")
        self.do(self.page.goto, address, timeout=PATIENCE_S * 1000)

    def value(self, code: str) -> Any:
        """What an expression of the page is worth."""
        # Not by Playwright's evaluate(), which calls eval() of the page: a test replaces that.
        answer = self.ask("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, code: str) -> None:
        """Wait until an expression holds."""
        patience = time.monotonic() + PATIENCE_S
        while not self._holds(code):
            assert time.monotonic() < patience, f"never came true: {code}"
            time.sleep(0.01)

    def _holds(self, code: str) -> bool:
        try:
            return bool(self.value(code))
        except Error as error:
            if NAVIGATED not in str(error):
                raise
        return False

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """`mousePressed`, `mouseReleased`, `mouseMoved` or `mouseWheel` at a place of the window."""
        button = {"button": "left", "clickCount": 1} if kind in ("mousePressed", "mouseReleased") else {}
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **{**button, **more})

    def click(self, x: float, y: float) -> None:
        """Press and release."""
        self.do(self.page.mouse.click, x, y)

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
            self.ask("Input.dispatchTouchEvent", type="touchMove" if number else "touchStart", touchPoints=points)
            self.value("new Promise((drawn) => requestAnimationFrame(() => drawn()))")
        self.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def key(self, key: str) -> None:
        """Press a key, named as in a keyboard event."""
        self.do(self.page.keyboard.press, key)

    def picture(self) -> bytes:
        """The window as PNG."""
        return self.do(self.page.screenshot)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """What the protocol of the browser has and Playwright has not."""
        return self.do(self._protocol.send, method, params)
