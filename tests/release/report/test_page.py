"""A report's page: paragraphs, tables whose numbers stand on the right, rows that are not shown."""

from __future__ import annotations

from sulq.release.report.page import ReportSection, report_page
from sulq.release.report.statement import Said

SECTION = ReportSection(
    "Cities <b>", "First.\n\nSecond & last.", ("city", "people"), (("Lod", "12 ± 3"),), (False, True), 7, "<svg/>",
    ("note",), "SELECT 1 < 2", "01-cities.csv",
)  # fmt: skip


def test_a_page_has_all_parts_as_text_T82() -> None:
    """Titles, paragraphs, cells and queries are escaped; what is drawn is taken as it is."""
    page = report_page("A & B", ["by us", ""], [SECTION], [Said("Who", ("Everybody.",))], ["Exact sums."])
    assert "<h1>A &amp; B</h1>" in page
    assert "<p>First.</p><p>Second &amp; last.</p>" in page
    assert '<td class="n">12 ± 3</td>' in page
    assert "7 more rows are in the file." in page
    assert "SELECT 1 &lt; 2" in page
    assert "<svg/>" in page
    assert "Cities &lt;b&gt;" in page
    assert page.index("Who") < page.index("Exact sums.")
    assert "<p></p>" not in page


def test_one_row_that_is_left_is_a_row() -> None:
    """And where all are shown nothing is said."""
    assert "1 more row is in" in report_page("A", [], [_with(more=1)], [], [])
    assert "more row" not in report_page("A", [], [_with(more=0)], [], [])


def _with(*, more: int) -> ReportSection:
    return ReportSection("A", "", ("a",), (("1",),), (False,), more, "", ())
