"""What a suite plans to run in an audit, read off its text: the names of its counts, how many cases, and why enough.

A count is known before its test has run, so that a page can say what is still missing. A name or a number that
the text does not say (a parameter stands in it) is read as far as it goes.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

# Kinds of counts: words of their names, and why as many as are planned are enough. The first that fits counts.
WORDS: Final = {
    "draws": ("draws", "scales", "numbers of coins", "transcripts", "noise", "adversaries"),
    "rates": (
        *("coverage", "intervals", "within", "regret", "margin", "usefulness", "runs", "fits", "bounds", "risks"),
        *("reconstructed", "traced", "estimat", "agnostic", "mixtures", "lemma", "norms", "variances", "conjunctions"),
        *("decision lists", "perceptrons", "emulation", "standard errors", "auto against", "groups without rows"),
    ),
    "faults": ("kills", "cuts", "races", "bits", "linearizable", "retries", "forked", "restores"),
    "all": (
        *("days of the calendar", "vertices", "kinds of work", "neighbours without", "exchanged in a choice"),
        *("texts through every door", "sizes of neighbours", "tests"),
    ),
    "cases": ("",),
}
WHY: Final = {
    "draws": """Samples of a law, compared with it by tests that fail by chance once in ten million. N of them show a
        distance of about 3/sqrt(N) from the law, 1/300 for a million; a wrong scale or rounding is far beyond it.""",
    "rates": """Runs of which a stated share must succeed. N of them give the share to 3 sqrt(b/N) where b may fail:
        for b = 0.05 to 0.005 by 20,000 runs, 0.015 by 2,000 and 0.05 by 200. A proved bound holds by a margin; its
        control, a bound that is too small, fails by more.""",
    "faults": """Interruptions, races and damage at random places. Of 1,800 kills a place that one in a hundred hits is
        missed with probability 1e-8. Bits are flipped one by one, at full count every bit of the file.""",
    "all": "Every case there is.",
    "cases": """Generated inputs, compared with a second implementation or with a neighbour's. N without a failure show,
        at 95 percent, that fewer than 3/N of such inputs fail: 1 in 1,300 for 4,000. Where a threat sets a bar, that
        is the plan: 100,000 replayed pairs an engine, 100,000 sums against big integers, 1,000,000 requests. On
        PostgreSQL and Spark, where a case takes up to a second and goes the way of DuckDB's from the reading of
        cells on, there are fewer: 60 to 500 show 1 in 20 to 170.""",
}


def kind(name: str) -> str:
    """Which kind a count is of, by its name."""
    return next(each for each, words in WORDS.items() if any(word in name for word in words))


def why(name: str) -> str:
    """Why the counts of a kind are enough, in one line."""
    return " ".join(WHY[name].split())


def planned(path: Path) -> dict[str, int]:
    """The counts of a test file by name; 0 cases where the text does not say how many."""
    found: dict[str, int] = {}
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "long=" in text else ():
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        values = {each.arg: each.value for each in node.keywords}
        if called == "count" and "long" in values and node.args:
            found[_name(node.args[0])] = _number(values["long"])
    return found


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)


def _number(node: ast.expr) -> int:
    try:
        return int(ast.literal_eval(node))
    except ValueError:
        return 0
