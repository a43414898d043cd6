"""Pages of learners: cells taken over from the page as it stands, falls and losses counted in standard errors."""

from __future__ import annotations

from benchmarks.epsilon import learners
from benchmarks.learning.taken_over import with_cells

PAGE = """\
# Learning, measured

Text before.

- no cell worse by more than 2 standard errors: met

### linear

| | epsilon | sulq | diffprivlib | scikit-learn | |
|---|---|---|---|---|---|
| wine | 1 | 0.771 ± 0.027 | 0.406 ± 0.034 | 0.983 | better |
| car | 1 | 0.785 ± 0.006 (9 runs) | none in time | 0.906 |  |

### k-means

| | epsilon | sulq | diffprivlib | scikit-learn | |
|---|---|---|---|---|---|
| car | 1 | 1.322 ± 0.003 | 1.280 ± 0.018 | 1.000 | behind |
"""


def test_cells_of_the_page_are_taken_over() -> None:
    """All but those measured anew, as they are told; the verdict is made of both."""
    new = [{"task": "linear", "table": "wine", "epsilon": 1.0, "who": "sulq", "scores": [0.3, 0.32] * 10}]
    page = with_cells(PAGE, new)
    assert page.startswith("# Learning, measured\n\nText before.\n\n- no cell worse by more than 2 standard errors: ")
    assert "| wine | 1 | 0.310 ± 0.002 | 0.406 ± 0.034 | 0.983 | **lost** |" in page
    assert "standard errors: **missed**" in page
    for row in ("| car | 1 | 0.785 ± 0.006 (9 runs) | none in time | 0.906 |  |", "| car | 1 | 1.322 ± 0.003 | 1.280"):
        assert row in page
    assert with_cells(page, []) == page
    assert "standard errors: **missed**" in with_cells(PAGE, [])  # k-means: 2.3, which is past 2


def test_the_page_says_whether_a_learner_falls_as_epsilon_grows() -> None:
    """A fall past two standard errors is listed, one within them is none; inertias are told as multiples."""
    head = PAGE[: PAGE.index("### k-means")]
    for after, verdict, falls in (("0.700 ± 0.020", "**missed**", 1), ("0.750 ± 0.020", "met", 0)):
        row = f"| wine | 10 | {after} | 0.406 ± 0.034 | 0.983 | better |"
        page = with_cells(head.replace("0.983 | better |", "0.983 | better |\n" + row), [])
        assert f"every learner monotone in epsilon on every table, within 2 standard errors: {verdict}" in page
        assert f"- {falls} of 1 steps from one epsilon to the next" in page
        assert ("- linear, wine: 0.771 ± 0.027 at epsilon 1, 0.700 ± 0.020 at 10, 2.1 standard errors" in page) == bool(
            falls
        )
    inertias = [
        {"task": "k-means", "table": "car", "epsilon": 0, "who": "scikit-learn", "scores": [-2.0]},
        {"task": "k-means", "table": "car", "epsilon": 1.0, "who": "sulq", "scores": [-3.0, -3.2] * 10},
    ]
    assert "| car | 1 | 1.550 ± 0.011 |" in with_cells(PAGE, inertias)


def test_falls_and_losses_are_counted_in_standard_errors() -> None:
    """A fall of two errors is none, one of more is missed; so is a cell behind a peer."""
    flat, up, down = (0.5, 0.52, 0.48, 0.5), (0.6, 0.62, 0.58, 0.6), (0.4, 0.42, 0.38, 0.4)
    cells: learners.Cells = {
        ("tree", "titanic", 0.1): {"sulq": flat, "peer": flat},
        ("tree", "titanic", 1.0): {"sulq": up, "peer": flat},
        ("linear", "titanic", 0.1): {"sulq": flat},
        ("linear", "titanic", 1.0): {"sulq": down},
        ("additive", "titanic", 1.0): {"sulq": down, "peer": up, "worse": flat},
    }
    falls = {bar.what.split(":")[0]: bar.met for bar in learners.monotone(cells)}
    assert falls == {"tree": True, "linear": False, "additive": True}
    assert {bar.what.split(":")[0]: bar.met for bar in learners.unbeaten(cells)} == {"tree": True, "additive": False}
    assert "| additive | titanic | 1 | 0.400 ± 0.008 | 0.600 ± 0.008 (peer) |" in learners.table(cells)
