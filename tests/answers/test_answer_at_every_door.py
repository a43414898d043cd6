"""The same answers at every door: Python, notebooks, frames, the command, the console, pages of releases.

The rows are made up and no noise is drawn, so that what is printed can be written down here; intervals are those of
the noise that would have been drawn (decision 0078).
"""

from __future__ import annotations

import contextlib
import datetime
import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from rich.console import Console

import sulq
from sulq import Epsilon, Unit
from sulq.answers.answer import Answer
from sulq.cli import query
from sulq.errors import QuestionError
from sulq.release.page import page
from sulq.release.publish import chart_of, columns_of
from sulq.service.console.views.answer import AnswerTable
from sulq.service.web.sql_answers import sql_json
from sulq.sql.answer import SqlAnswer
from sulq.testing import exact

SIZE = 30_000
SPEND = Epsilon(0.5)
START = datetime.date(2020, 1, 1)
COLUMNS = {
    "city": ["Haifa", "Lod", "Yafo"],
    "year": sulq.Int(1984, 1988, missing=False),
    "day": sulq.Date("2020-01-01", "2020-01-28", missing=False),
    "income": sulq.Real(0, 100_000),
    "tiny": sulq.Real(0, 1e-6),
    "big": sulq.Int(0, 10**9),
    "age": sulq.Int(0, 99),
}


@pytest.fixture(scope="module")
def db() -> Iterator[sulq.Database]:
    rows = range(SIZE)
    table = pa.table(
        {
            "city": ["Haifa" if i % 3 else "Lod" for i in rows],
            "year": [1984 + i % 5 for i in rows],
            "day": [START + datetime.timedelta(days=i % 28) for i in rows],
            "income": [20_000.0 + i for i in rows],
            "tiny": [5e-7] * SIZE,
            "big": [10**9] * SIZE,
            "age": [i % 100 for i in rows],
        }
    )
    with sulq.connect(table, table="t", columns=COLUMNS, unit=Unit(), budget=Epsilon(1000), synthetic=True) as opened:
        yield exact(opened)


NAMED = {
    "count by city": (
        lambda db: db.count(by="city", spend=SPEND),
        ["Haifa    20,000 +- 6", "Lod      10,000 +- 6", "Yafo     0 +- 6", "missing  0 +- 6"],
    ),
    "unknown groups": (
        lambda db: db.mean("income", by="city", spend=SPEND),
        ["Haifa    35,000 +- 22", "Lod      34,998 +- 44", "Yafo     unknown", "missing  unknown"],
    ),
    "mean by year": (lambda db: db.mean("income", by="year", spend=SPEND), ["1984  34,998 +- 73"]),
    "dates": (lambda db: db.count(by="day", spend=SPEND), ["2020-01-01  1072 +- 6", "2020-01-02  1072 +- 6"]),
    "1e9": (lambda db: db.sum("big", spend=SPEND), ["30,000,000,000,000 +- 6,000,000,000"]),
    "tiny": (lambda db: db.mean("tiny", spend=SPEND), ["5.0000e-7 +- 1.4e-10"]),
    "histogram": (
        lambda db: db.histogram("age", bins=2, spend=SPEND),
        ["[0, 49.5)   15,000 +- 6", "[49.5, 99]  15,000 +- 6"],
    ),
    "covariance": (
        lambda db: db.covariance(["age", "income"], spend=SPEND),
        ["        age           income", "age     833.2 +- 3.3  800 +- 3,600"],
    ),
}
BY_YEAR = (
    "SELECT year, COUNT(*) AS n, AVG(income) AS mean, 100.0 * AVG(CASE WHEN age < 30 THEN 1 ELSE 0 END) AS percent "
    "FROM t GROUP BY year"
)
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(income) AS mean FROM t GROUP BY city"
BY_DAY = "SELECT day, COUNT(*) AS n FROM t GROUP BY day"
CITIES = [
    ("Haifa", "20,000 +- 11", "35,000 +- 22"),
    ("Lod", "10,000 +- 11", "34,998 +- 44"),
    ("Yafo", "0 +- 11", "unknown"),
    ("NULL", "0 +- 11", "unknown"),
]
YEAR = ("1984", "6000 +- 16", "35,000 +- 150", "30.00 +- 0.18")


@pytest.mark.parametrize("name", NAMED)
def test_named_asks_in_python_and_in_a_notebook(name: str, db: sulq.Database) -> None:
    """The lines written above begin the text; the HTML has the same cells."""
    ask, lines = NAMED[name]
    found = ask(db)
    assert isinstance(found, Answer)
    assert repr(found).splitlines()[: len(lines)] == lines
    for cell in (cell for line in lines for cell in line.split("  ") if cell):
        assert f">{cell.strip()}</t" in found._repr_html_()


def sql(db: sulq.Database, text: str) -> SqlAnswer:
    found = db.sql(text, spend=SPEND)
    assert isinstance(found, SqlAnswer)
    return found


def cells(text: str) -> list[tuple[str, ...]]:
    return [tuple(cell.strip() for cell in line.split("  ") if cell) for line in text.splitlines()]


def printed(form: str, answer: SqlAnswer, monkeypatch: pytest.MonkeyPatch) -> str:
    out = io.StringIO()
    monkeypatch.setattr(query, "console", Console(file=out, width=200))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        query.PRINTED[form](answer)
    return out.getvalue()


def test_SQL_in_python_a_notebook_and_the_command(db: sulq.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same cells in all three; a percentage to the hundredth that its interval bears, a year without a comma."""
    by_city, by_year = sql(db, BY_CITY), sql(db, BY_YEAR)
    assert cells(repr(by_city))[1:5] == CITIES
    assert cells(repr(by_year))[1] == YEAR
    for answer, rows in ((by_city, CITIES), (by_year, [YEAR])):
        table = printed("table", answer, monkeypatch)
        for row in rows:
            assert "".join(f"<td>{cell}</td>" for cell in row) in answer._repr_html_()
            assert any(all(cell in line for cell in row) for line in table.splitlines())


def test_the_commands_CSV_and_JSON_are_for_programs(db: sulq.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every digit, counts whole, dates as ISO texts; what is unknown is missing, as each form has it."""
    first, *rest = printed("csv", sql(db, BY_CITY), monkeypatch).splitlines()
    assert first == "city,n,low_n,high_n,mean,low_mean,high_mean"
    assert rest[0].startswith("Haifa,20000,")
    assert rest[2].split(",")[4] == ""
    found = json.loads(printed("json", sql(db, BY_DAY), monkeypatch))
    assert found["rows"][0] == ["2020-01-01", 1072, 1066, 1078]
    assert printed("csv", sql(db, BY_DAY), monkeypatch).splitlines()[1] == "2020-01-01,1072,1066,1078"


def test_frames_and_arrow_tables(db: sulq.Database) -> None:
    """Counts and years whole, dates as dates, the rest doubles."""
    assert [str(kind) for kind in sql(db, BY_DAY).to_pandas(0.95).dtypes] == ["datetime64[s]", *["int64"] * 3]
    assert [str(kind) for kind in sql(db, BY_YEAR).to_pandas().dtypes] == ["int64", "int64", "float64", "float64"]
    assert [str(field.type) for field in sql(db, BY_DAY).to_arrow().schema] == ["date32[day]", "int64"]
    assert [str(kind) for kind in db.count(by="year", spend=SPEND).to_pandas(0.95).dtypes] == ["int64"] * 4


def test_the_console(db: sulq.Database) -> None:
    """The same texts with the console's signs; time is drawn as a line with ticks, cities as bars."""

    def table(text: str) -> AnswerTable:
        return AnswerTable.of(json.loads(json.dumps(sql_json(sql(db, text)))))

    shown = [tuple(f"{cell.text} {cell.spread}".strip() for cell in row) for row in table(BY_CITY).cells()]
    assert shown[:3] == [
        (*(cell.replace("+-", "±") for cell in row[:2]), mean)
        for row, mean in zip(CITIES[:3], ("35,000 ± 22", "34,998 ± 44", "unknown 0 to 100,000"), strict=True)
    ]
    assert shown[3][0] == "missing"
    (_, bars), _ = table(BY_CITY).charts()
    assert 'class="bar"' in bars
    ((_, line),) = table(BY_DAY).charts()
    assert 'class="trace"' in line
    assert ">2020-01-07</text>" in line or ">2020-01-08</text>" in line or ">2020-01-09</text>" in line
    (_, years), *_ = table(BY_YEAR).charts()
    assert ">1986</text>" in years


def test_a_page_of_a_release(db: sulq.Database) -> None:
    """Numbers beside their bars are rounded as everywhere; days are a line."""
    by_city = chart_of("by city", columns_of(db.count(by="city", spend=SPEND)))
    by_day = chart_of("by day", columns_of(sql(db, BY_DAY)))
    assert by_city is not None
    assert by_day is not None
    shown = page("title", "paid", [by_city, by_day])
    assert ">20,000 +- 6</text>" in shown
    assert ">missing</text>" in shown
    assert shown.count('class="trace"') == 1


def test_plots_draw_the_column_that_is_named(db: sulq.Database) -> None:
    """Bars for cities, a line for days and years; another column than the first; one that there is not is refused."""
    assert len(db.count(by="city", spend=SPEND).plot().patches) == 4
    assert len(db.count(by="day", spend=SPEND).plot().lines) == 1
    by_year = sql(db, BY_YEAR)
    axes = by_year.plot(column="mean")
    assert (axes.get_ylabel(), len(axes.lines)) == ("mean", 1)
    asked = db.ask(sulq.Sums((sulq.col("age"), sulq.col("big")), None, (sulq.col("year"),)), spend=SPEND)
    assert isinstance(asked, Answer)
    assert asked.plot(column="big").get_ylabel() == "big"
    for found in (asked, by_year):
        with pytest.raises(QuestionError, match="no column 'nope'"):
            found.plot(column="nope")
