"""Learning in a real browser: columns ticked, the fit watched, the model seen and taken along; by keyboard too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq import Epsilon, learn
from tests.browser.browsing import Watched, browser
from tests.service.service import Running, service

TRIES = 3
NAMES = {learner.__name__ for learner in learn.LEARNERS}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with service(Epsilon(10), web=1, workers=1) as found:
        yield found


def clusters(at: Watched) -> None:
    """From the tab to the model's file."""
    page = at.page
    page.click("main >> text=KMeans")
    page.check("input[name=x][value=age]")
    page.check("input[name=x][value=income]")
    page.fill("#p-n_clusters", "3")
    page.fill("#amount", "2")
    assert page.get_attribute("#slide", "aria-valuetext") == "2"
    at.shoot("learn-form")
    page.click("main button:has-text('Learn')")
    page.wait_for_selector("#model")
    words = page.inner_text("main")
    assert "Done" in words
    assert "Spent ε 2" in words
    assert page.locator("svg.chart.wide circle.dot").count() >= 3
    at.shoot("learned")
    with page.expect_download() as saved:
        page.click("text=Download the model")
    model = learn.load(Path(saved.value.path()))
    assert model.cluster_centers_.shape == (3, 2)
    assert saved.value.suggested_filename == "kmeans.json"


def tree(at: Watched) -> None:
    """With the keyboard alone: tab to a box, tick it, send the form from a field."""
    page = at.page
    at.go("/datasets/survey/learn/ID3")
    page.focus("#y")
    page.keyboard.type("city")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.is_checked("input[name=x][value=age]")
    page.focus("#amount")
    page.keyboard.press("Enter")
    page.wait_for_selector("pre.tree")
    assert page.get_attribute("main [role=status]", "role") == "status"
    at.shoot("learned-tree")


def test_a_model_is_learned_in_a_browser(running: Running) -> None:
    """Nothing is loaded from elsewhere and nothing complains. A browser that waits in vain begins anew."""
    for left in reversed(range(TRIES)):
        try:
            with browser(running.url) as at:
                at.sign_in(running.tokens["alice"])
                at.go("/datasets/survey")
                at.page.click("nav >> text=Learn")
                assert all(name in at.page.inner_text("main") for name in NAMES)
                at.shoot("learn")
                if "KMeans" in NAMES:
                    clusters(at)
                if "ID3" in NAMES:
                    tree(at)
                assert at.foreign() == []
                assert at.complaints == []
        except Exception as error:
            if type(error).__name__ != "TimeoutError" or not left:
                raise
        else:
            return
