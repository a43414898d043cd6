"""Reports: one debit, pages and files made again from the saved answers alone, promises that follow from the facts."""

from __future__ import annotations

import dataclasses
import datetime
import html
import re
from pathlib import Path

import numpy as np
import pyarrow.csv as pc
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, Unit, release
from sulq.release.report import PublishedReport, ReportSpec
from sulq.release.report.report import _notes
from tests.learn.cases import exact, opened, refused

rng = np.random.default_rng(5)
ROWS = 2000
COLUMNS = {
    "id": sulq.Int(0, ROWS),
    "age": sulq.Int(0, 100),
    "city": ["Haifa", "<b>Lod</b>"],
    "year": sulq.Int(2015, 2025),
}
DATA = {
    "id": np.arange(ROWS),
    "age": rng.integers(0, 101, ROWS),
    "city": rng.choice(["Haifa", "<b>Lod</b>"], ROWS),
    "year": rng.integers(2015, 2026, ROWS),
}
BY_CITY = "SELECT city, COUNT(*) AS people, AVG(age) AS age FROM data GROUP BY city"
BY_YEAR = "SELECT year, COUNT(*) AS people FROM data GROUP BY year ORDER BY year"
TABLES = [
    {"title": "People by city", "sql": BY_CITY, "about": "Where they live."},
    {"title": "Over the years", "sql": BY_YEAR, "weight": 2.0},
    {"title": "Middle age", "sql": "SELECT MEDIAN(age) AS age FROM data", "chart": "none"},
]
SPEC = {"title": "People & places", "author": "An office", "spend": {"epsilon": 1.0}, "table": TABLES}
SYNTHETIC = {"columns": ["city", "year"], "rows": 50, "spend": {"epsilon": 0.5}}


def page_of(folder: Path) -> str:
    """The page as its reader sees the text."""
    return html.unescape(re.sub(r"<[^>]+>", " ", (folder / "index.html").read_text(encoding="utf-8")))


def test_a_report_is_one_debit_and_is_made_again_from_its_answers(tmp_path: Path) -> None:
    """Saved, loaded where there is no data and saved again, every file is the same byte for byte."""
    db = opened(COLUMNS, DATA, Epsilon(3), unit=Unit("id"))
    made = db.report(SPEC)
    assert len(db.transcript()) == 1
    assert db.spent == made.paid.spent == Epsilon(1)
    made.save(tmp_path / "one")
    said = repr(made)
    db.close()
    again = release.load(tmp_path / "one")
    assert isinstance(again, PublishedReport)
    assert repr(again) == said
    again.save(tmp_path / "two")
    files = {file.name for file in (tmp_path / "one").iterdir()}
    assert files == {
        "01-people-by-city.csv", "02-over-the-years.csv", "03-middle-age.csv", "index.html", "release.json",
    }  # fmt: skip
    assert {name: (tmp_path / "two" / name).read_bytes() for name in files} == {
        name: (tmp_path / "one" / name).read_bytes() for name in files
    }
    assert again[0].to_dict() == made[0].to_dict()


def test_a_report_of_some_rows_or_of_late_declarations_says_so_SR28(tmp_path: Path) -> None:
    """Of a view, and of declarations made after looking, also when it is loaded again; control: of all rows neither."""
    view = {"title": "Some", "spend": {"epsilon": 0.5}, "table": [{"title": "n", "sql": "SELECT COUNT(*) FROM view"}]}
    with opened(COLUMNS, DATA, Epsilon(3), unit=Unit("id")) as db:
        plain = db.report(SPEC)
        db.view("SELECT age FROM data WHERE age > 50").report(view).save(tmp_path / "view")
        late = _notes(dataclasses.replace(db.facts, looked=(("data", "column age"),)))
    assert plain.notes == ()
    assert late == ("Some of what is declared was declared after looking at the data: column age.",)
    release.load(tmp_path / "view").save(tmp_path / "again")
    for folder in ("view", "again"):
        assert "rows of the derived table view as they were chosen" in page_of(tmp_path / folder)


def test_synthetic_rows_are_paid_and_saved_beside_the_tables(tmp_path: Path) -> None:
    """They have debits of their own, which page and statement name, and are loaded again as they were."""
    db = opened(COLUMNS, DATA, Epsilon(3), unit=Unit("id"))
    made = db.report(SPEC | {"synthetic": SYNTHETIC})
    assert made.synthetic is not None
    assert db.spent.exact == made.paid.spent.exact + made.synthetic.paid.spent.exact
    made.save(tmp_path / "made")
    assert pc.read_csv(tmp_path / "made" / "synthetic-rows.csv").num_rows == 50
    again = release.load(tmp_path / "made")
    assert again.synthetic.rows.equals(made.synthetic.rows)
    assert "epsilon 1 and epsilon 0.5" in page_of(tmp_path / "made")
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "index.html").read_bytes() == (tmp_path / "made" / "index.html").read_bytes()


def test_a_report_of_which_only_a_part_fits_costs_nothing() -> None:
    """Tables and synthetic rows fit together or none is asked. Control: each would fit alone."""
    db = opened(COLUMNS, DATA, Epsilon(1.2), unit=Unit("id"))
    before = len(db.transcript())
    refused("budget-exceeded", db.report, SPEC | {"synthetic": SYNTHETIC})
    assert len(db.transcript()) == before
    assert db.spent.amount == 0
    db.report(SPEC)


def test_a_page_shows_titles_and_cells_as_text_T82(tmp_path: Path) -> None:
    """A category, a title and a text of the author's that look like HTML stay what they are; nothing is fetched."""
    db = opened(COLUMNS, DATA, Epsilon(3))
    spec = SPEC | {"title": "<script>alert(1)</script>", "about": "<img src=x>\n\nA second paragraph."}
    db.report(spec).save(tmp_path / "made")
    text = (tmp_path / "made" / "index.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<img" not in text
    assert "<b>Lod</b>" not in text
    assert "default-src 'none'" in text
    assert re.findall(r'(?:href|src)="([^"]*)"', text) == [
        "#t1", "#t2", "#t3", "01-people-by-city.csv", "02-over-the-years.csv", "03-middle-age.csv",
    ]  # fmt: skip


def test_years_are_a_line_and_cities_are_bars(tmp_path: Path) -> None:
    """What a chart is follows from the keys; its author may say otherwise."""
    db = opened(COLUMNS, DATA, Epsilon(30))

    def drawn(**more: object) -> list[bool]:
        tables = [table | more for table in TABLES[:2]]
        db.report(SPEC | {"table": tables}).save(tmp_path / "made")
        text = (tmp_path / "made" / "index.html").read_text(encoding="utf-8")
        return ["trace" in part for part in text.split("<h2")[1:3]]

    assert drawn() == [False, True]
    assert drawn(chart="bars") == [False, False]


def test_weights_make_a_table_nearer() -> None:
    """A table that counts more has the less noise of two alike. Control: with equal weights both have as much."""
    db = opened(COLUMNS, DATA, Epsilon(30))

    def widths(*weights: float) -> list[float]:
        tables = [
            {"title": str(i), "sql": f"SELECT SUM(age) AS a FROM data WHERE year > {2016 + i}", "weight": weight}
            for i, weight in enumerate(weights)
        ]
        made = db.report(SPEC | {"table": tables})
        return [float(answer.accuracy(0.05)) for answer in (made[0], made[1])]

    even, uneven = widths(1, 1), widths(1, 9)
    assert even[0] == pytest.approx(even[1], rel=0.05)
    assert uneven[1] < 0.8 * uneven[0]


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.05), EpsilonDelta(1, 1e-6)], ids=str)
def test_every_kind_of_price_is_told_and_read_again(spend: sulq.language.privacy.Loss, tmp_path: Path) -> None:
    """The page names the price in the field's terms; the level of the intervals is the author's."""
    db = opened(COLUMNS, DATA, EpsilonDelta(5, 1e-5))
    made = db.report({"title": "A", "level": 0.9, "table": TABLES}, spend=spend)
    made.save(tmp_path / "made")
    assert str(spend) in page_of(tmp_path / "made")
    assert "Intervals at 90%" in page_of(tmp_path / "made")
    low, high = made[1].interval(0.9)
    table = pc.read_csv(tmp_path / "made" / "02-over-the-years.csv")
    assert table["low_people"].to_pylist() == pytest.approx([row[1] for row in low])
    assert table["high_people"].to_pylist() == pytest.approx([row[1] for row in high])
    assert release.load(tmp_path / "made").spec.spend == spend


def test_a_budget_is_shown_only_where_its_owner_wants_that(tmp_path: Path) -> None:
    """What else was spent or is left is nobody's business. Control: with show_budget the page says it."""
    db = opened(COLUMNS, DATA, Epsilon(7.25371))
    for show in (False, True):
        db.report(SPEC | {"show_budget": show}).save(tmp_path / str(show))
        files = b"".join(file.read_bytes() for file in sorted((tmp_path / str(show)).iterdir()))
        assert (b"epsilon 7.25371" in files) is show


def test_a_report_without_noise_says_what_the_data_say() -> None:
    """The same report of made-up data without noise has the exact counts: what is shown is what was asked."""
    made = exact(opened(COLUMNS, DATA)).report(SPEC, spend=Epsilon(1))
    counts = {row[0]: row[1] for row in made[1].value if row[0] is not None}
    assert counts == {year: int((DATA["year"] == year).sum()) for year in range(2015, 2026)}


def test_a_saved_report_that_was_altered_is_not_read(tmp_path: Path) -> None:
    """A title may be another's; queries that do not fit the answers are refused."""
    db = opened(COLUMNS, DATA, Epsilon(3))
    db.report(SPEC).save(tmp_path / "made")
    told = (tmp_path / "made" / "release.json").read_text(encoding="utf-8")
    (tmp_path / "made" / "release.json").write_text(told.replace("MEDIAN(age) AS age", "MAX(age) AS age", 1), "utf-8")
    refused("bad-release", release.load, tmp_path / "made")


def test_a_report_says_the_day_it_was_made() -> None:
    """By the clock of whoever asks."""
    made = opened(COLUMNS, DATA, Epsilon(3)).report(ReportSpec.read(SPEC))
    assert made.made == datetime.datetime.now(datetime.UTC).date().isoformat()
    assert len(made) == 3
