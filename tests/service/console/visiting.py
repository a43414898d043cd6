"""The console visited without a browser: pages over ASGI, and what every page must keep to."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from html.parser import HTMLParser
from types import TracebackType
from typing import Self

import httpx

from sulq.service.web.app import create_app
from tests.service.office import Office

ORIGIN = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
EMPTY = {"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}


class Visitor:
    """A browser of sorts: keeps cookies, follows no redirect by itself, sends forms as a page of ours would."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.app = create_app(office.call, office.service, jobs=office.near.client)
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def request(self, method: str, path: str, **more: object) -> httpx.Response:
        return self._runner.run(self.http.request(method, path, **more))

    def get(self, path: str, **more: object) -> httpx.Response:
        return self.request("GET", path, **more)

    def sign_in(self, role: str) -> Self:
        self.http.cookies.clear()
        reply = self.request("POST", "/sign-in", data={"token": self.office.tokens[role]}, headers=ORIGIN)
        assert reply.status_code == 303
        return self

    @property
    def word(self) -> str:
        """What forms of this session carry, taken from a page."""
        return unescape(re.search(r'name="form" value="([^"]+)"', self.get("/datasets").text)[1])

    def send(self, path: str, *, piece: bool = False, **fields: object) -> httpx.Response:
        """Send a form as a page of this session does; `piece`: as htmx does."""
        headers = ORIGIN | ({"HX-Request": "true"} if piece else {})
        return self.request("POST", path, data={"form": self.word} | fields, headers=headers)

    def close(self) -> None:
        self._runner.run(self.http.aclose())
        self._runner.close()
        self.office.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Page(HTMLParser):
    """A page taken apart, with what is wrong with it in `faults`."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self._labelled: set[str] = set()
        self._fields: list[tuple[str, dict[str, str | None], bool]] = []
        self._ids: list[str] = []
        self.feed(text)
        self.close()
        self._settle(whole="<html" in text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag not in EMPTY:
            self._open.append(tag)
        if "id" in given:
            self._ids.append(str(given["id"]))
        if tag == "script" and not str(given.get("src", "")).startswith("/static/"):
            self.faults.append("a script that is not a file of ours")
        if tag in {"style", "iframe", "object", "embed", "base"}:
            self.faults.append(f"<{tag}>")
        for name, value in given.items():
            if name.startswith("on") or name == "style" or str(value or "").strip().lower().startswith("javascript:"):
                self.faults.append(f"{tag} {name}")
        if tag == "label":
            self._labelled.add(str(given.get("for", "")))
        if tag in {"input", "select", "textarea"} and given.get("type") != "hidden":
            self._fields.append((tag, given, "label" in self._open))
        if tag == "img" and "alt" not in given:
            self.faults.append("an image without words")
        if tag == "svg" and given.get("role") != "img":
            self.faults.append("a drawing that is not told")
        if tag == "th" and "scope" not in given:
            self.faults.append("a heading of a table without scope")

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._open:
            self.faults.append(f"</{tag}> that was not open")
            return
        while self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.text.append(data)

    def _settle(self, *, whole: bool) -> None:
        for tag, given, inside in self._fields:
            if not (inside or given.get("id") in self._labelled or given.get("aria-label")):
                self.faults.append(f"{tag} {given.get('name')} without a label")
        if len(set(self._ids)) != len(self._ids):
            self.faults.append("two things of one id")
        names = [tag for tag, _ in self.tags]
        if whole and (names.count("main") != 1 or names.count("h1") != 1 or names.count("title") < 1):
            self.faults.append("main, h1 and title stand on every page")
        if whole and self.tags[0] != ("html", {"lang": "en"}):
            self.faults.append("no language")

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def shown(reply: httpx.Response) -> Page:
    """A page that keeps to the rules."""
    page = Page(reply.text)
    assert page.faults == [], reply.url
    return page
