"""Releasing in a real browser: columns ticked, the job watched, charts seen, the files taken along; by keyboard too."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq import Epsilon, release
from sulq.service.jobs.publication import ALL
from tests.browser.browsing import Watched, browser
from tests.service.service import Running, service

TRIES = 3


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with service(Epsilon(10), web=1, workers=1) as found:
        yield found


def counts(at: Watched, folder: Path) -> None:
    """From the tab to the release's files."""
    page = at.page
    page.click("main >> text=contingency")
    page.check("input[name=p-attributes][value=city]")
    page.check("input[name=p-attributes][value=age]")
    page.fill("#p-marginals", "city; city, age")
    page.fill("#p-bins", "4")
    page.fill("#amount", "2")
    assert page.get_attribute("#slide", "aria-valuetext") == "2"
    at.shoot("release-form")
    page.click("main button:has-text('Publish')")
    page.wait_for_selector("#release")
    words = page.inner_text("main")
    assert "Done" in words
    assert "Spent ε 2" in words
    assert page.locator("svg.chart.wide line.whisker").count() >= 3
    at.shoot("released")
    with page.expect_download() as saved:
        page.click("text=Download the files")
    assert saved.value.suggested_filename == "contingency.zip"
    with zipfile.ZipFile(saved.value.path()) as archive:
        archive.extractall(folder)
    assert release.load(folder).marginal(["city"]).values.size >= 2


def chosen(at: Watched) -> None:
    """With the keyboard alone: a column by its name, then the form sent from a field."""
    page = at.page
    at.go("/datasets/survey/release/choose")
    page.focus("#p-candidates")
    page.keyboard.type("city")
    page.focus("#amount")
    page.keyboard.press("Enter")
    page.wait_for_selector("#release")
    assert "the chosen one of" in page.inner_text("main")
    at.shoot("chosen")


def test_a_release_is_published_in_a_browser(running: Running, tmp_path: Path) -> None:
    """Nothing is loaded from elsewhere and nothing complains. A browser that waits in vain begins anew."""
    for left in reversed(range(TRIES)):
        try:
            with browser(running.url) as at:
                at.sign_in(running.tokens["alice"])
                at.go("/datasets/survey")
                at.page.click("nav >> text=Release")
                assert all(each.__name__ in at.page.inner_text("main") for each in ALL)
                at.shoot("release")
                counts(at, tmp_path / str(left))
                chosen(at)
                assert at.foreign() == []
                assert at.complaints == []
        except Exception as error:
            if type(error).__name__ != "TimeoutError" or not left:
                raise
        else:
            return
