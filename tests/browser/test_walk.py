"""The whole way in a real browser: data is registered, a token made, questions asked, the budget spent to its end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from sulq import Epsilon
from tests.browser.browsing import SECONDS, Watched, browser
from tests.service.service import Running, service

HOSTILE = "<img src=x onerror=window.pwned=1>"
CATEGORIES = ["<script>window.pwned=2</script>", "</textarea><svg onload=window.pwned=3>", "plain & simple"]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """One service for all walks; each registers data of its own."""
    with service(Epsilon(10), web=1, workers=1) as found:
        yield found


def people(path: Path, names: dict[str, object], rows: int = 600) -> Path:
    """A data file to register."""
    whole = {name: [values[i % len(values)] for i in range(rows)] for name, values in names.items()}
    pa.parquet.write_table(pa.table({"who": list(range(rows))} | whole), path)
    return path


def register(at: Watched, file: str, name: str, columns: dict[int, tuple[str, ...]], epsilon: str) -> None:
    """Walk the owner's steps: the file, its columns, whom to protect, the budget, how the rows fit, a last look."""
    page = at.page
    at.go("/register")
    page.check(f"input[value='{file}']")
    page.fill("#name", name)
    page.click("text=Next: its columns")
    page.wait_for_selector("#k0")
    for i, (kind, *values) in columns.items():
        page.select_option(f"#k{i}", kind)
        for field, value in zip("v" if kind == "category" else "ab", values, strict=False):
            page.fill(f"#{field}{i}", value)
    if name == "census":
        at.shoot("register-columns")
    page.click("text=Next: whom to protect")
    page.select_option("#person", "who")
    if name == "census":
        at.shoot("register-unit")
    page.click("text=Next: the budget")
    page.fill("#epsilon", epsilon)
    page.click("text=Next: how the rows fit")
    if name == "census":
        page.click("text=Count now")
        page.wait_for_selector("text=600 rows of 600 persons")
        at.shoot("register-check")
    page.click("text=Next: a last look")
    if name == "census":
        at.shoot("register-review")
    page.click("button:has-text('Register')")
    page.wait_for_selector(f"text={name} is registered")


def opened(at: Watched, name: str) -> None:
    """Wait until a new dataset can be asked."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        at.go(f"/datasets/{name}")
        if at.page.locator("text=What is promised").count():
            return
        time.sleep(0.2)
    raise AssertionError("the dataset did not open")


def price(at: Watched) -> tuple[float, float]:
    """Price and expected error as the page shows them before an ask."""
    words = " ".join(at.page.inner_text("#price").split())
    found = re.search(r"ε ([\d.]+).*?± ([\d,.]+)", words)
    return (float(found[1]), float(found[2].replace(",", ""))) if found else (0.0, 0.0)


def owners_part(at: Watched, running: Running) -> str:
    """The owner registers a dataset and makes a token for an analyst; the token is given."""
    people(running.folder / "people.parquet", {"age": list(range(90)), "city": ["Haifa", "Lod", "Yafo"]})
    at.go("/")
    at.shoot("sign-in")
    at.sign_in(running.tokens["owner"])
    at.shoot("datasets")
    columns = {0: ("skip",), 1: ("int", "0", "110"), 2: ("category", "Haifa\nLod\nYafo")}
    register(at, "people.parquet", "census", columns, "0.5")
    at.page.click("text=Make a token for an analyst")
    at.page.fill("#name", "dana")
    at.page.check("input[value=census]")
    at.page.click("text=Make the token")
    token = at.page.input_value("#new-token")
    at.shoot("token")
    opened(at, "census")
    at.go("/datasets/census/budget")
    at.page.fill("#analyst", "dana")
    at.page.fill("#share", "100")
    at.page.fill("#reserve", "20")
    at.page.click("button:has-text('Set')")
    at.page.wait_for_selector("text=20% kept for them")
    at.sign_out()
    return token


def analysts_part(at: Watched, token: str) -> None:
    """The analyst sees the price move with the slider, asks, sees the chart, spends to the end, is refused kindly."""
    page = at.page
    at.sign_in(token)
    at.go("/datasets/census")
    at.shoot("about")
    page.click("text=Ask a question")
    page.fill("#sql", "SELECT city, COUNT(*) FROM census GROUP BY city")
    page.wait_for_selector(".errors >> text=count")  # of this query, and not of the one that stood there
    before = price(at)
    page.focus("#slide")
    for _ in range(12):
        page.keyboard.press("PageUp")
    paid = page.input_value("#amount")
    page.wait_for_selector(f"#price .tag strong >> text='ε {paid}'")  # the last of them, and not one on the way
    after = price(at)
    assert after[0] == float(paid) > before[0]
    assert after[1] < before[1]
    assert page.get_attribute("#slide", "aria-valuetext") == page.input_value("#amount")
    at.shoot("ask")
    page.fill("#amount", "0.2")
    page.click("#send")
    page.wait_for_selector("#answered")
    words = page.inner_text("#answer")
    assert "95% confidence" in words
    assert "Left: ε 0.3" in words
    chart = page.locator("#answer svg.chart.wide")
    assert chart.count() == 1
    assert chart.locator(".whisker").count() >= 9
    assert chart.bounding_box()["width"] > 300
    at.shoot("answer")
    with page.expect_download() as saved:
        page.click("text=Download CSV")
    assert Path(saved.value.path()).read_text(encoding="utf-8").startswith("city,count,low_count,high_count")
    page.click("#send")
    page.wait_for_selector("text=answered before: free")
    accuracy(at)
    page.fill("#sql", "SELECT AVG(age) FROM census")
    page.fill("#amount", "0.3")
    page.click("#send")
    page.wait_for_selector("#answer >> text=/Left: ε 0\\.(?![0-9])/")  # nothing; not the ε 0.3 of the answer before
    page.fill("#sql", "SELECT COUNT(*) FROM census WHERE age > 50")
    page.fill("#amount", "0.1")
    page.click("#send")
    page.wait_for_selector("#answer .notice")
    refused = page.inner_text("#answer")
    assert "not enough budget left" in refused
    assert "What you can do" in refused
    assert "Nothing was spent" in refused
    at.shoot("refused")
    at.go("/datasets/census/history")
    assert page.locator("tbody tr").count() == 2
    at.shoot("history")
    with page.expect_download() as kept:
        page.locator("text=Download").first.click()
    assert "entry" in Path(kept.value.path()).read_text(encoding="utf-8")
    at.sign_out()


def accuracy(at: Watched) -> None:
    """By keyboard alone: name how far off the answer may be, and read what that costs; then go back to the price."""
    page = at.page
    page.focus("input[name=by][value=price]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.type("60")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#price >> text=with 99% confidence")
    assert 0 < price(at)[1] <= 60
    at.shoot("accuracy")
    page.check("input[name=by][value=price]")
    page.wait_for_selector("#price >> text=with 95% confidence")


def jobs_part(at: Watched, running: Running) -> None:
    """Another analyst has a job done and watches it to its end."""
    page = at.page
    at.sign_in(running.tokens["alice"])
    at.go("/datasets/survey/jobs/new/queries")
    page.fill("#p-queries", "SELECT COUNT(*) FROM survey\n\nSELECT city, AVG(income) FROM survey GROUP BY city")
    page.fill("#p-spend", "1")
    page.click("text=Start")
    page.wait_for_selector("text=Done: 2 of 2")
    at.shoot("job")
    at.sign_out()


def auditors_part(at: Watched, running: Running) -> None:
    """The owner sees who spent what; the auditor verifies the ledger and reads the report."""
    page = at.page
    at.sign_in(running.tokens["owner"])
    at.go("/datasets/census/budget")
    assert "dana" in page.inner_text("main")
    at.shoot("budget")
    at.go("/people")
    at.shoot("people")
    at.sign_out()
    at.sign_in(running.tokens["auditor"])
    at.go("/datasets/census/ledger")
    page.click("text=Verify now")
    page.wait_for_selector("text=The ledger verifies")
    at.shoot("ledger")
    at.go("/datasets/census/audit")
    at.shoot("audit")
    at.sign_out()


def test_the_whole_way_in_a_browser(running: Running) -> None:
    """Owner, analyst and auditor walk the console; nothing is loaded from elsewhere and nothing complains."""
    with browser(running.url) as at:
        token = owners_part(at, running)
        analysts_part(at, token)
        jobs_part(at, running)
        auditors_part(at, running)
        assert at.foreign() == []
        assert at.complaints == []
        assert len(at.requests) > 50


def test_hostile_texts_run_nowhere_T82(running: Running) -> None:
    """Markup in column names, categories, queries and tokens is read as text by a real browser: no script starts."""
    with browser(running.url) as at:
        people(running.folder / "hostile.parquet", {HOSTILE: [1, 2, 3], "kind": CATEGORIES})
        page = at.page
        at.sign_in(running.tokens["owner"])
        columns = {0: ("skip",), 1: ("int", "0", "9"), 2: ("category", "\n".join(CATEGORIES))}
        register(at, "hostile.parquet", "hostile", columns, "5")
        opened(at, "hostile")
        assert HOSTILE in page.inner_text("main")
        at.go("/datasets/hostile/ask")
        page.fill("#sql", f'SELECT kind, SUM("{HOSTILE}") AS "{HOSTILE}" FROM hostile GROUP BY kind')
        page.wait_for_selector(".errors")
        page.click("#send")
        page.wait_for_selector("#answered")
        words = page.inner_text("#answer table")
        assert HOSTILE in words
        assert all(category in words for category in CATEGORIES)
        at.shoot("hostile")
        page.fill("#sql", f'SELECT "{HOSTILE}{HOSTILE}" FROM hostile')
        page.click("#send")
        page.wait_for_selector("#answer .notice")
        for path in ("/datasets/hostile/history", "/datasets/hostile/audit", f"/datasets/{HOSTILE}", "/people"):
            at.go(path)
        assert page.evaluate("window.pwned") is None
        assert at.complaints == []
        assert at.foreign() == []


def test_control_the_watch_sees_what_it_is_for(running: Running) -> None:
    """Control: a foreign request, a broken policy and a dialog are all noticed."""
    with browser(running.url) as at:
        at.go("/sign-in")
        at.page.evaluate(
            "() => { const i = new Image(); i.src = 'http://example.org/x.png'; document.body.append(i); }"
        )
        at.page.evaluate("() => { const s = document.createElement('script'); s.text = '1'; document.body.append(s); }")
        at.page.evaluate("() => alert(1)")
        until = time.monotonic() + SECONDS
        while not (at.foreign() and len(at.complaints) > 1) and time.monotonic() < until:
            at.page.wait_for_timeout(50)
        assert any("Content Security Policy" in told for told in at.complaints)
        assert "a dialog rose" in at.complaints
        assert at.foreign() == ["http://example.org/x.png"]
