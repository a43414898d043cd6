"""The list of datasets: it looks again by itself while rows are being prepared, and only then."""

from __future__ import annotations

import pytest

from sulq.service.console.page import page


@pytest.mark.parametrize(("problem", "again"), [("", True), ("The disk is full.", False)])
def test_the_list_looks_again_while_rows_are_being_prepared(problem: str, again: bool) -> None:  # noqa: FBT001
    """It asks for itself and takes the list alone; a dataset that is stopped is not waited for.

    No share is told: how far it has come follows the rows, which are not the visitor's.
    """
    waiting = {"name": "survey", "place": "/datasets/survey", "facts": None, "left": 0.0, "problem": problem}
    frame = {"me": {"name": "ada"}, "role": "analyst", "word": "w", "here": "/datasets", "dataset": "", "place": ""}
    shown = page("datasets.html", datasets=[waiting], file=lambda name: name, tabs=[], refusal=None, **frame)
    assert ('hx-get="/datasets" hx-trigger="every 5s" hx-select="ul.grid"' in shown) is again
    assert ("being prepared" in shown) is again
    assert "%" not in shown.partition('<ul class="grid"')[2].partition("</ul>")[0]
