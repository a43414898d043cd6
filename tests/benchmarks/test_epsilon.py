"""The page of what an epsilon buys: sections replace their older selves, and a missed bar is counted."""

from __future__ import annotations

import ast
import importlib
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.epsilon import keys, learners, marginals
from benchmarks.epsilon.__main__ import PARTS
from benchmarks.epsilon.bars import PAGE, Bar, Section
from benchmarks.learning import sets
from benchmarks.report import put


def test_a_section_takes_the_place_of_its_older_self() -> None:
    """Others stay as they are, in their order; a new one comes last."""
    one, two = Section("One", [Bar("a", "1", "2", "3", met=True)]), Section("Two", [])
    page = put(put("# Page\n\nText.\n", one.title, one.text()), two.title, two.text())
    newer = Section("One", [Bar("a", "9", "2", "3", met=False)], ["A note."])
    again = put(page, newer.title, newer.text())
    assert newer.missed == 1
    assert again.index("## One") < again.index("A note.") < again.index("## Two")
    assert "| a | 9 | 2 | 3 | **missed** |" in again
    assert "| a | 1 |" not in again
    assert again.startswith("# Page\n\nText.\n")


def test_every_part_can_be_run() -> None:
    """Each name is a module with a `run`."""
    assert all(callable(importlib.import_module(f"benchmarks.epsilon.{name}").run) for name in PARTS)


def test_every_lost_cell_is_told() -> None:
    """Worst first, and of how many splits; where none is lost, the worst alone."""
    runs = (0.5, 0.6, 0.7)
    cells: learners.Cells = {
        ("tree", "Default", 1.0): {"sulq": runs, "peer": tuple(run + 0.5 for run in runs)},
        ("tree", "Default", 10.0): {"sulq": runs, "peer": tuple(run + 0.9 for run in runs)},
        ("tree", "titanic", 1.0): {"sulq": runs[:2], "peer": runs[:2]},
        ("linear", "diamonds", 1.0): {"sulq": runs, "peer": tuple(run + 0.1 for run in runs)},
        ("linear", "diamonds", 10.0): {"sulq": runs, "peer": tuple(run + 0.01 for run in runs)},
    }
    linear, tree = learners.unbeaten(cells)
    lost = "Default, epsilon 10: 11.0; Default, epsilon 1: 6.1"
    assert tree.beside == f"{lost}; 1 of 3 cells ahead or level (2 or 3 splits)"
    assert not tree.met
    assert linear.beside == "diamonds, epsilon 1: 1.2; 0 of 2 cells ahead or level (2 or 3 splits)"
    assert linear.met
    assert all(bar.beside.endswith("(2 or 3 splits)") for bar in learners.monotone(cells))


def test_tables_that_were_looked_at_have_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the table or the peer it is said that nothing was run; with both the peer's lead is judged."""
    monkeypatch.setattr(sets, "folder", lambda: tmp_path)
    assert [(bar.ours, bar.met) for bar in learners.level(learners.additive())] == [("the table is not here", None)] * 2
    random = np.random.default_rng(8)
    size = random.random(300)
    frame = pd.DataFrame({"sex": random.choice(["F", "M"], 300), "size": size, "rings": np.rint(20 * size).astype(int)})
    frame.to_csv(tmp_path / "abalone.csv", index=False)
    monkeypatch.setattr(learners, "RUNS", 2)
    cells = learners.additive()
    assert {(task, name) for task, name, _ in cells} == {("additive", "abalone")}
    assert [bar.met for bar in learners.level(cells)] == [None, None]
    for lead, met in ((0.0, True), (1.0, False)):
        beside = {key: by | {"DP-EBM": tuple(one + lead for one in by["sulq"])} for key, by in cells.items()}
        assert [bar.met for bar in learners.level(beside)] == [None, met]


def test_minutes_are_those_of_the_clock() -> None:
    """Whatever the processor's time; each row by the same rule."""
    assert not marginals.in_time("pairs", 315.0, 25.0).met
    assert marginals.in_time("pairs", 299.0, 400.0).met


def test_a_peer_that_was_not_run_is_not_passed() -> None:
    """Neither met nor missed, beside whoever else was run; and an equal share of delta is judged with its like."""
    own, many, absent = keys.Shown(100, 1.0), keys.Shown(200, 1.0), keys.Shown(math.nan, math.nan)
    assert own.no_fewer(own) is True
    assert own.no_fewer(own, many) is False
    assert own.no_fewer(own, absent) is own.no_fewer(many, absent) is None
    usual = keys.Shown(keys.BEFORE[10][0] * 1.4, 1.0), keys.Shown(keys.BEFORE[10][1] * 1.6, 1.0)
    bars = keys._bars(10, (many, many), usual, (own, absent, absent))
    assert [bar.met for bar in bars] == [None, None, False, True]
    assert Section("Keys", bars).missed == 1
    assert "PipelineDP not run" in bars[0].line()
    assert bars[0].line().endswith("| not run |")


def test_weights_that_the_kernel_does_not_certify() -> None:
    """Nobody's weights are longer than 1; where a label has more than enough, others of its people have more."""
    of = np.array([[0, 1 + person] for person in range(2_000)])
    labels = keys.Labels(of, np.bincount(of.ravel(), minlength=keys.LABELS))
    for weights in (keys.policy(labels, 100.0), keys.adaptive(labels, 100.0)):
        assert weights[0] < labels.counts[0] / math.sqrt(2)
        assert weights[1:].max() > 0.85 > 1 / math.sqrt(2)
    alone = keys.Labels(of[:1], np.bincount(of[:1].ravel(), minlength=keys.LABELS))
    assert all(math.isclose(np.linalg.norm(own), 1.0) for own in (keys.policy(alone, 100.0), keys.adaptive(alone, 1.0)))


def written_by_hand(page: str) -> list[str]:
    """Lines of the sections with words that no text in the code of the benchmarks has."""
    root = Path(__file__).parents[2] / "benchmarks"
    files = [file for folder in ("epsilon", "learning") for file in (root / folder).glob("*.py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    pieces = sorted((piece for text in texts for piece in re.split(r"{[^{}]*}", text)), key=len, reverse=True)
    lines = page.partition("\n## ")[2].splitlines()
    left = "\n".join(lines)
    for piece in pieces:
        left = left.replace(piece, "|") if len(piece) > 2 else left
    return [line for line, rest in zip(lines, left.split("\n"), strict=True) if re.search(r"[A-Za-z]{4}", rest)]


def test_the_page_says_what_the_code_says() -> None:
    """Nobody adds to it by hand: neither a paragraph nor a word in a row."""
    page = PAGE.read_text(encoding="utf-8")
    assert not written_by_hand(page)
    assert written_by_hand(page.replace("| met |", "(not measured again) | met |", 1))
    assert written_by_hand(page + "\nThe other rows are of an earlier version.\n")
