"""The console's files: vendored ones unmodified, all of them listed, none found by a path."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from sulq.service.console.page import FOLDER, KINDS, address
from tests.service.console.visiting import Visitor

ROOT = Path(__file__).resolve().parents[3]
THIRD = ROOT / "THIRD_PARTY.md"


def test_vendored_files_are_what_their_makers_published_T89() -> None:
    """Each vendored file has the SHA-256 that THIRD_PARTY.md names, and each is named there."""
    named = r"`(console/static/vendor/[^`]+)` \|[^|]*\|[^|]*\| `([0-9a-f]{64})`"
    told = dict(re.findall(named, THIRD.read_text(encoding="utf-8")))
    files = {f"console/static/vendor/{path.name}": path for path in (FOLDER / "vendor").iterdir()}
    assert set(told) == set(files)
    for name, path in files.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == told[name]


def test_only_listed_files_are_served(visitor: Visitor) -> None:
    """Each file is served under its kind; nothing else in or outside the folder is."""
    for name, kind in KINDS.items():
        reply = visitor.get(address(name))
        assert reply.status_code == 200
        assert reply.headers["content-type"] == kind
        assert reply.content == (FOLDER / name).read_bytes()
    for name in ("../app.py", "..%2Fapp.py", "vendor/", "", "vendor/htmx-LICENSE.txt", "%2e%2e/session.py"):
        assert visitor.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize("name", ["console.css", "console.js", "mark.svg"])
def test_our_own_files_name_no_other_host(name: str) -> None:
    """Nothing is loaded from elsewhere: no address but the name space of SVG."""
    text = (FOLDER / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert "://" not in text
    assert "@import" not in text
    assert "eval(" not in text
