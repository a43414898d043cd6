"""A real browser before the console: what it loads, what it complains of, and pictures of what it shows."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

SCREENS = Path(__file__).resolve().parents[2] / ".build" / "screens"
NAMES = ("chromium", "chromium-browser", "google-chrome")
LOOPBACK = {"127.0.0.1", "localhost"}
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    # Whatever is not this machine cannot even be looked up.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
WIDE = {"width": 1200, "height": 850}
PHONE = {"width": 375, "height": 812}
SECONDS = 180  # for one step: on a busy machine all take longer, and none takes so long
SHOWN = 2000  # characters of a page that a failure tells of


def missing(what: str) -> None:
    """Elsewhere a missing browser is a skip that says so; where everything must be there it is a failure."""
    if os.environ.get("SULQ_CI") == "1":
        pytest.fail(f"{what}: the browser tests must run here")
    pytest.skip(f"{what}: the console is not walked in a browser")


@dataclass
class Watched:
    """One browser and all it did. `complaints`: scripts that failed, policies that were broken, dialogs that rose."""

    context: BrowserContext
    page: Page
    base: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(self.base + path)

    def sign_in(self, token: str) -> None:
        """As somebody at a keyboard does: the field has the focus by itself, once the page is drawn.

        A page may be loaded and not drawn yet, on a busy machine for long: keys that came before would be lost.
        """
        self.go("/sign-in")
        self.page.wait_for_selector("#token:focus")
        self.page.keyboard.type(token)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("header")

    def sign_out(self) -> None:
        self.page.get_by_role("button", name="Sign out").click()
        self.page.wait_for_selector("#token")

    def shoot(self, name: str) -> None:
        """Pictures on a desk and on a phone, by day and by night; nothing may stick out of a phone's screen."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        for size, view in (("desktop", WIDE), ("phone", PHONE)):
            self.page.set_viewport_size(view)
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                self.page.screenshot(path=SCREENS / f"{name}-{size}-{scheme}.png", full_page=True)
            wide = self.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= view["width"], f"{name} is {wide} wide on a {size}"
        self.page.set_viewport_size(WIDE)
        self.page.emulate_media(color_scheme="light")

    def told(self) -> str:
        """Where a walk ended and what was to be seen there, for whoever reads that it failed."""
        try:
            shown = self.page.evaluate("document.body.innerText")
        except Exception as error:  # noqa: BLE001 - it is about another failure
            shown = f"nothing: {error}"
        return f"at {self.page.url}, complaints {self.complaints}, last {self.requests[-5:]}:\n{shown[:SHOWN]}"

    def foreign(self) -> list[str]:
        """Requests that were not for this machine."""
        inside = ("data", "blob", "about")
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme not in inside and urlsplit(url).hostname not in LOOPBACK
        ]


@contextmanager
def browser(base: str) -> Iterator[Watched]:
    """A fresh browser with nothing in it, closed and swept away afterwards."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        missing("there is no chromium on the path")
    with tempfile.TemporaryDirectory(prefix="sulq-browser-") as folder, sync_playwright() as play:
        context = play.chromium.launch_persistent_context(
            folder, executable_path=path, headless=True, args=list(FLAGS), viewport=WIDE, timeout=SECONDS * 1000
        )
        context.set_default_timeout(SECONDS * 1000)
        watched = Watched(context, context.pages[0], base)
        _watch(watched)
        try:
            yield watched
        except BaseException as error:
            error.add_note(watched.told())
            raise
        finally:
            context.close()


def _watch(watched: Watched) -> None:
    page = watched.page
    watched.context.on("request", lambda request: watched.requests.append(request.url))
    page.on("pageerror", lambda error: watched.complaints.append(f"script: {error}"))

    def dialog(found: object) -> None:
        watched.complaints.append("a dialog rose")
        found.dismiss()

    def said(message: object) -> None:
        if "Content Security Policy" in message.text or "Refused to" in message.text:
            watched.complaints.append(message.text)

    page.on("dialog", dialog)
    page.on("console", said)
