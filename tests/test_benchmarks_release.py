"""The arithmetic behind the page of marginals: distances, the best of the others, and who is past the bar."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import mbi_oracle, release_peers
from benchmarks.allowed import allowed
from benchmarks.kept import Kept
from benchmarks.release_costs import plain
from benchmarks.release_marginals import Cell, counts, generated, independent, loaded, marginals, off, page
from sulq.release.tables.fourier import fitted


def cell(auto: list[float], **others: list[float]) -> Cell:
    return Cell("k10", 2, 1.0, {"auto": auto, **others}, "cells")


def test_the_best_of_the_others_decides() -> None:
    """Not auto itself, nor one that has no runs; 4% worse is met, 6% is not, unless chance may be all of it."""
    found = cell([1.04, 1.04], cells=[1.0, 1.0], mbi=[2.0], slow=[])
    assert (found.best, found.ratio, found.verdict) == ("cells", pytest.approx(1.04), "met")
    assert cell([1.06, 1.06], cells=[1.0, 1.0]).verdict == "**missed**"
    assert cell([1.06, 1.06], cells=[0.9, 1.1]).verdict == "**missed**, by less than two standard errors"
    assert cell([1.06], cells=[1.0]).verdict == "**missed**"  # a single run is granted no slack


def test_the_page_tells_what_was_missed() -> None:
    """A dash for none, the number of runs where they are few, and a line for each cell past the bar."""
    text = "\n".join(page([cell([2.0, 2.0], cells=[1.0], fourier=[])], 2, 10))
    assert "| k10 | 2 | 1 | 2.0000 | 1.0000 (1) | - | - |" in text
    assert "in 0 of 1 cells" in text
    assert "k10, 2-way, epsilon 1: 2.00000 ± 0.00000 against 1.00000" in text
    assert "against" not in "\n".join(page([cell([1.0], cells=[1.0])], 1, 10)).split("cells.")[-1]


def test_distances() -> None:
    """Of the true marginals none; of marginals one row off in two cells, 2 over the rows."""
    found = loaded("k10")
    assert found is not None
    frame, sizes = found
    truth = marginals(frame, sizes, 2)
    assert len(truth) == 45
    assert off(lambda places: counts(frame, places, sizes), truth, len(frame)) == 0
    moved = np.array([[1.0, -1.0], [0.0, 0.0]])
    assert off(lambda places: truth[places] + moved, truth, len(frame)) == pytest.approx(2 / len(frame))


def test_scores_are_kept(tmp_path: Path) -> None:
    """What is in the file is not measured again; another setting is."""
    kept = Kept(tmp_path / "scores")
    kept.add({"key": ["k10", 1.0, "auto", 2], "scores": [0.1]})
    again = Kept(tmp_path / "scores")
    assert again.of(["k10", 1.0, "auto", 2]) == {"key": ["k10", 1.0, "auto", 2], "scores": [0.1]}
    assert again.of(["k10", 1.0, "auto", 3]) is None


def test_the_program_is_the_same() -> None:
    """HiGHS called directly ends as near to the coefficients as ours; a table of nothing, the control, is farther."""
    rng = np.random.default_rng(1)
    matrix = rng.choice([-1, 1], (16, 7))
    matrix[:, 0] = 1
    asked = np.bincount(generated(4, 50) @ [8, 4, 2, 1], minlength=16) @ matrix + rng.laplace(0, 9, 7)
    far = [
        float(np.abs(asked - found @ matrix).max())
        for found in (fitted(matrix, asked, np.ones(7)), plain(matrix, asked))
    ]
    assert far[0] == pytest.approx(far[1], abs=1e-3)
    assert far[1] < np.abs(asked).max()


def test_independent_columns_are_as_far_off_as_the_columns_depend() -> None:
    """With next to no noise .06 of the rows in pairs of k10, more in triples; with much noise more still."""
    (near,), (noisy,) = independent("k10", 1e6, 1), independent("k10", 1e-3, 1)
    assert near["2"] == pytest.approx(0.061, abs=0.003)
    assert near["2"] < near["3"] < noisy["3"]


@pytest.mark.parametrize(("sizes", "order"), [((2, 3, 2, 4, 2), 2), ((2,) * 6, 3), ((3, 2), 2)])
def test_mbi_is_given_its_own_marginals(sizes: tuple[int, ...], order: int) -> None:
    """The faster oracle is mbi's to rounding; that of other potentials, the control, is not."""
    mbi = pytest.importorskip("mbi", reason="install sulq[synth]")
    rng = np.random.default_rng(2)
    names = [f"x{i}" for i in range(len(sizes))]
    domain = mbi.Domain(names, sizes)
    cliques = list(itertools.combinations(names, order))

    def drawn() -> object:
        tables = {c: mbi.Factor(domain.project(c), rng.normal(size=domain.project(c).shape)) for c in cliques}
        return mbi.CliqueVector(domain, cliques, tables)

    potentials, others = drawn(), drawn()
    true = mbi.marginal_oracles.message_passing_shafer_shenoy(potentials, 1000.0)
    ours, control = (mbi_oracle.oracle(sizes, order)(p, 1000.0) for p in (potentials, others))
    far = [max(float(np.abs(each[c].values - true[c].values).max()) for c in cliques) for each in (ours, control)]
    assert far[0] < 0.1  # of 1,000 rows, in single precision
    assert far[1] > 1


def test_the_whole_table_of_a_model() -> None:
    """Its marginals are those that the model projects to."""
    mbi = pytest.importorskip("mbi", reason="install sulq[synth]")
    rng = np.random.default_rng(3)
    domain = mbi.Domain(["a", "b", "c"], (2, 3, 4))
    told = [
        mbi.LinearMeasurement(rng.uniform(50, 100, domain.project(pair).size()), pair, stddev=1.0)
        for pair in itertools.combinations("abc", 2)
    ]
    model = mbi.estimation.MirrorDescent().estimate(domain, told, iters=20)
    whole = mbi_oracle.table(model)
    assert whole.sum(axis=1) == pytest.approx(np.asarray(model.project(("a", "c")).values), rel=1e-3)
    assert whole.sum(axis=2) == pytest.approx(np.asarray(model.project(("a", "b")).values), rel=1e-3)
    assert whole.sum(axis=1) != pytest.approx(whole.sum(axis=1).mean(), rel=1e-3)


def test_a_models_other_marginals_are_mbis() -> None:
    """Of columns that no clique holds, in a chain and apart; control: another model's are not."""
    mbi = pytest.importorskip("mbi", reason="install sulq[synth]")
    rng, domain = np.random.default_rng(4), mbi.Domain(["a", "b", "c", "d", "e"], (2, 3, 4, 2, 3))
    cliques = [("a", "b"), ("c", "b"), ("c", "d"), ("e",)]
    tables = [
        {c: mbi.Factor(domain.project(c), rng.normal(size=domain.project(c).shape)) for c in cliques} for _ in "ab"
    ]
    models = []
    for each in tables:
        potentials = mbi.CliqueVector(domain, cliques, each)
        marginals = mbi.marginal_oracles.message_passing_shafer_shenoy(potentials, 100.0)
        models.append(mbi.MarkovRandomField(potentials=potentials, marginals=marginals, total=100.0))
    for own in (("a", "d"), ("d", "a"), ("b", "e"), ("a", "b")):
        told = np.asarray(models[0].project(own).values)
        assert release_peers.projected(models[0], own) == pytest.approx(told, rel=1e-4)
        assert release_peers.projected(models[1], own) != pytest.approx(told, rel=1e-2)


def test_large_tables_are_left_to_mbi() -> None:
    """Where the halves are too large there is no oracle, which is mbi's own."""
    assert mbi_oracle.oracle((100,) * 6, 2) is None
    assert not mbi_oracle.fits((100,) * 6, 2)


@pytest.mark.parametrize(
    ("text", "lines", "late", "failed"),
    [
        ("print('{\"error\": 1}'); print('noise')", 1, False, False),
        ("print('{\"error\": 1}', flush=True)\nwhile True: pass", 1, True, False),
        ("import time; time.sleep(60)", 0, True, False),
        ("print('{}'); raise SystemExit(2)", 1, False, True),
    ],
)
def test_a_peer_has_its_time(text: str, lines: int, late: bool, failed: bool) -> None:  # noqa: FBT001
    """What it wrote by then counts: of one that ends, computes on, hangs, or fails."""
    ended = allowed([sys.executable, "-c", text], 2.0)
    assert (len(ended.lines), ended.late, ended.failed) == (lines, late, failed)
