"""Inference from l to 2l attributes: the truth without noise, error bars that hold, one debit, refusals for free."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit, release
from sulq.answers import wire
from sulq.release.inference import Inference, infer
from sulq.release.subsets import Direct
from tests.learn.cases import exact, opened, refused
from tests.learn.sq.noisy import Arrays

PEOPLE = Unit("pid")
COLUMNS = {"a": sulq.Bool(), "b": sulq.Bool(), "c": ["x", "y", "z"], "d": sulq.Real(0, 8)}
NAMES = list(COLUMNS)
STILL = Epsilon(400)  # so much that the noise that standard errors foresee is nothing


def made(n: int = 4000, seed: int = 0) -> dict[str, np.ndarray]:
    """Rows of four attributes that hang together."""
    rng = np.random.default_rng(seed)
    a = rng.random(n) < 0.3
    c = np.where(rng.random(n) < 0.5, "x", rng.choice(["y", "z"], n))
    return {
        "pid": np.arange(n),
        "a": a,
        "b": rng.random(n) < np.where(a, 0.6, 0.2),
        "c": c,
        "d": np.where(c == "x", rng.random(n) * 4, rng.random(n) * 8),
    }


def true(data: dict[str, np.ndarray], names: list[str]) -> np.ndarray:
    """Shares of all rows by some attributes; d in two intervals."""
    codes = {
        "a": data["a"].astype(int),
        "b": data["b"].astype(int),
        "c": np.searchsorted(["x", "y", "z"], data["c"].astype(str)),
        "d": np.minimum(data["d"] // 4, 1).astype(int),
    }
    found = np.zeros([{"a": 2, "b": 2, "c": 3, "d": 2}[name] for name in names])
    np.add.at(found, tuple(codes[name] for name in names), 1)
    return found / len(data["pid"])


DATA = made()


@pytest.mark.parametrize(("l", "design", "subsets"), [(1, "groups", 2000), (1, "halves", 120), (2, "groups", 3000)])
def test_without_noise_S3_11(l: int, design: str, subsets: int) -> None:  # noqa: E741
    """What was measured is the truth; every inferred minterm of up to 2l attributes lies within its standard errors."""
    oracle = exact(opened(COLUMNS, DATA, Epsilon(900), unit=PEOPLE))
    found = infer(oracle, NAMES, l, subsets, design=design, bins=2, spend=STILL)
    assert found.histograms.people == 4000
    for size in range(1, 2 * l + 1):
        for names in itertools.permutations(NAMES, size):
            table, truth = found.table(names), true(DATA, list(names))
            if size <= l:
                assert table.values == pytest.approx(truth)
                continue
            assert np.abs((table.values - truth) / table.standard_error).max() < 6
            assert table.standard_error.max() < 0.15
            assert table.proper.sum() == pytest.approx(1)
            assert table.proper.min() >= 0
    one = found.minterm({"b": True, "a": True})
    assert one.value == pytest.approx(found.table(["a", "b"]).values[1, 1])
    assert one.value == pytest.approx(found.table(["b", "a"]).values[1, 1])
    either = found.function(["a", "c"], lambda a, c: a or c == "x")
    cells = found.table(["a", "c"])
    assert either.value == pytest.approx(cells.values[1].sum() + cells.values[0, 0])
    assert abs(either.value - (DATA["a"] | (DATA["c"] == "x")).mean()) < 6 * either.standard_error


def test_implication_S3_12() -> None:
    """Both methods find that a makes b likelier, by how much, and that it makes not-b less likely."""
    oracle = exact(opened(COLUMNS, DATA, Epsilon(900), unit=PEOPLE))
    found = infer(oracle, NAMES, 1, 3000, bins=2, spend=STILL)
    effect = DATA["b"][DATA["a"]].mean() - DATA["b"].mean()
    for method in ("regression", "heavy"):
        told = found.implication({"a": True}, {"b": True}, method)
        assert abs(told.effect.value - effect) < 6 * told.effect.standard_error
        assert told.effect.value > 4 * told.effect.standard_error
        assert told.implies
        other = found.implication({"a": True}, {"b": False}, method)
        assert not other.implies
        assert other.effect.value == pytest.approx(-told.effect.value, rel=0.05)
    assert found.implication({"a": True}, {"d": 7.5}).chance == pytest.approx((DATA["d"] >= 4).mean())


def test_the_two_parts_are_read_off_different_histograms() -> None:
    """Only then is their noise independent: single attributes, each in several pairs, are never read off the same."""
    oracle = exact(opened(COLUMNS, DATA, Epsilon(900), unit=PEOPLE))
    kept = infer(oracle, NAMES, 2, 10, bins=2, spend=STILL).histograms
    for one, other in itertools.permutations(range(4), 2):
        held = kept.pair((one,), (other,))
        assert held is not None
        assert held[0] != held[1]
        assert one in held[0]
        assert other in held[1]
    assert len(kept.splits((0, 1, 2, 3))) == 3
    assert len(kept.splits((0, 1, 3))) == 3
    for (one, other), (first, second) in kept.splits((0, 1, 2, 3)):
        assert (set(one) | set(other), one, other) == ({0, 1, 2, 3}, first, second)
    assert infer(oracle, NAMES[:2], 1, 10, spend=STILL).histograms.pair((0,), (1,)) == ((0,), (1,))


@pytest.mark.parametrize("spend", [Epsilon(8), Rho(8)], ids=str)
def test_standard_errors_hold_with_noise(spend: object) -> None:
    """Over 60 draws of noise and of groups, deviations are about their standard errors; halved ones would not do."""
    data = {name: cells for name, cells in made(3000, 5).items() if name != "pid"}
    truth = true({**data, "pid": data["a"]}, ["a", "b"])[1, 1]
    people = np.random.default_rng(9).integers(0, 2**60, 3000)
    away = []
    for seed in range(60):
        oracle = Arrays(COLUMNS, data, seed=seed, unit=PEOPLE, budget=Rho(900))
        oracle.frame.person = lambda: people  # engines hash the person to 60 bits
        found = infer(oracle, ["a", "b"], 1, 100, salt=1000 * seed, spend=spend).minterm({"a": True, "b": True})
        away.append((found.value - truth) / found.standard_error)
    square = float(np.mean(np.square(away)))  # 1, with a deviation of about .2
    assert 0.5 < square < 1.8
    assert 4 * square > 1.8


def test_the_number_of_people_is_noisy_or_declared_SR6() -> None:
    """Under add_remove it comes from the noisy histograms of the same question; declared, it is what was declared."""
    db = opened(COLUMNS, DATA, Epsilon(9), unit=PEOPLE)
    found = infer(db, NAMES, 1, 20, spend=Epsilon(1))
    sums = [float(cells.sum()) for cells in found.histograms.whole]
    assert found.histograms.people == pytest.approx(np.mean(sums))
    assert len({round(each) for each in sums}) > 1  # each histogram tells another number
    assert db.spent == Epsilon(1) == found.paid.spent
    assert len(found.paid.receipts) == 1
    declared = infer(opened(COLUMNS, DATA, Epsilon(9), unit=PEOPLE, size=5000), NAMES, 1, 20, spend=Epsilon(1))
    assert declared.histograms.people == 5000


def test_the_same_is_asked_of_every_neighbour_SR6() -> None:
    """Rows, a row more, no rows at all: the same question at the same spend, and an answer."""
    asked = []
    for n in (0, 1, 300):
        data = {name: cells[:n] for name, cells in DATA.items() if name != "pid"}
        oracle = Arrays(COLUMNS, data, seed=1, unit=Unit(neighbors="zero_out"))
        found = infer(oracle, NAMES, 1, spend=Epsilon(1))
        assert np.isfinite(found.table(["a", "c"]).values).all()
        assert found.implication({"a": True}, {"b": True}).effect.standard_error > 0
        assert found.direct is not None
        asked.append([(wire.encode(question), spend) for question, spend in oracle.asked])
    assert asked[0] == asked[1] == asked[2]
    assert len(asked[0]) == 1


def test_missing_values_are_a_cell_of_their_own() -> None:
    """Shares are of all rows: rows that miss an attribute are in none of the told cells."""
    data = {**DATA, "d": np.where(np.arange(4000) % 4 == 0, np.nan, DATA["d"])}
    oracle = exact(opened(COLUMNS, data, Epsilon(900), unit=PEOPLE))
    found = infer(oracle, ["a", "b", "d"], 1, 2000, bins=2, spend=STILL)
    assert found.histograms.people == 4000
    assert found.table(["d"]).values.sum() == pytest.approx(0.75)
    both = found.table(["a", "d"])
    known = ~np.isnan(data["d"])
    assert abs(both.values[1, 0] - (DATA["a"] & known & (data["d"] < 4)).mean()) < 6 * both.standard_error[1, 0]


def test_direct_measurement_is_compared() -> None:
    """What the 2l histograms would cost and give at the same spend: far better here; told in words."""
    db = opened(COLUMNS, DATA, Epsilon(9), unit=PEOPLE)
    found = infer(db, NAMES, 1, spend=Epsilon(1))
    assert found.direct is not None
    assert found.direct.histograms == 6
    assert found.direct.standard_error == pytest.approx(math.sqrt(2) * 6 / found.histograms.people, rel=1e-2)
    assert found.direct.better > 20
    assert "times smaller than inference's" in str(found.direct)
    assert "times larger" in str(Direct(10_000, 0.5, 0.1))
    gaussian = opened(COLUMNS, DATA, EpsilonDelta(9, 1e-6), unit=PEOPLE)
    assert infer(gaussian, NAMES, 1, spend=EpsilonDelta(1, 1e-6)).direct.better > 20


def test_the_number_of_groups_follows_the_declared_size() -> None:
    """With a declared size the number of groups is n p(1 - p)/R; without one a constant."""
    sizes = [
        infer(opened(COLUMNS, DATA, Epsilon(9), unit=PEOPLE, size=n), ["a", "b"], spend=Epsilon(1)).subsets
        for n in (4000, 40_000)
    ]
    assert sizes[1] == pytest.approx(10 * sizes[0], rel=0.1)
    noise = 2 * (2 / 0.8) ** 2
    assert sizes[0] == pytest.approx(4000 * 0.25 / noise, rel=0.1)
    assert infer(opened(COLUMNS, DATA, Epsilon(9), unit=PEOPLE), ["a", "b"], spend=Epsilon(1)).subsets == 256


def test_under_a_sublinear_budget() -> None:
    """Every noisy count is a query."""
    oracle = Arrays(
        COLUMNS, {name: DATA[name] for name in NAMES}, seed=1, unit=Unit(neighbors="zero_out"),
        budget=SubLinear(epsilon=1, delta=1e-6, queries=1000), size=4000,
    )  # fmt: skip
    found = infer(oracle, ["a", "b"], 1, 10, design="halves")
    assert found.paid.spent == Queries(11 * 6)
    refused("budget-exceeded", infer, oracle, ["a", "b"], 1, 400, design="halves")


def test_saved_and_loaded(tmp_path: Path) -> None:
    """Every estimate comes back from either format, without data."""
    made_ = infer(opened(COLUMNS, DATA, Epsilon(9), unit=PEOPLE), NAMES, 1, 30, bins=3, spend=Epsilon(1))
    for written in ("parquet", "csv"):
        made_.save(tmp_path / written, written)
        again = release.load(tmp_path / written)
        assert isinstance(again, Inference)
        assert again.table(["d", "a"]).values == pytest.approx(made_.table(["d", "a"]).values)
        assert again.minterm({"d": 8.0, "c": "z"}) == made_.minterm({"d": 8.0, "c": "z"})
        assert again.implication({"a": True}, {"c": "x"}, "heavy") == made_.implication(
            {"a": True}, {"c": "x"}, "heavy"
        )
        assert again.direct == made_.direct
    page = (tmp_path / "csv" / "index.html").read_text(encoding="utf-8")
    assert "inferred from those of 1" in page
    file = tmp_path / "csv" / "release.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"groups"', '"other"'), encoding="utf-8")
    refused("bad-release", release.load, tmp_path / "csv")


def test_what_cannot_be_divided_is_refused_SR11() -> None:
    """Rows without a person under add_remove, and people of several rows: nothing is spent."""
    rowed = opened(COLUMNS, {name: DATA[name] for name in NAMES}, Epsilon(9))
    refused("needs-position", infer, rowed, NAMES, spend=Epsilon(1))
    several = opened(COLUMNS, DATA, Epsilon(9), unit=Unit("pid", rows=3))
    refused("bad-question", infer, several, NAMES, spend=Epsilon(1))
    for db in (rowed, several):
        assert db.remaining == Epsilon(9)
        assert not [entry for entry in db.transcript() if "answer" in entry]


@pytest.mark.parametrize(
    ("code", "attributes", "options"),
    [
        ("bad-parameter", ["a"], {}),
        ("bad-parameter", ["a", "a"], {}),
        ("bad-parameter", "ab", {}),
        ("bad-parameter", NAMES, {"l": 3}),
        ("bad-parameter", NAMES, {"l": 0}),
        ("bad-parameter", NAMES, {"subsets": 1}),
        ("bad-parameter", NAMES, {"subsets": 2.5}),
        ("bad-parameter", NAMES, {"bins": 0}),
        ("bad-parameter", NAMES, {"salt": 0.5}),
        ("bad-parameter", NAMES, {"design": "thirds"}),
        ("unknown-column", ["a", "height"], {}),
        ("unknown-column", ["a", "pid"], {}),
        ("too-large", NAMES, {"subsets": 2000, "design": "halves"}),
        ("budget-exceeded", NAMES, {"spend": Epsilon(10)}),
        ("spend-missing", NAMES, {"spend": None}),
        ("spend-kind", NAMES, {"spend": Rho(1)}),
    ],
)
def test_bad_input_is_refused_for_free(code: str, attributes: list[str], options: dict[str, object]) -> None:
    """Each with its code; the ledger is as it was."""
    db = opened(COLUMNS, made(50), Epsilon(9), unit=PEOPLE)
    refused(code, infer, db, attributes, **{"spend": Epsilon(1), **options})
    assert db.remaining == Epsilon(9)


def test_a_reader_is_told_what_cannot_be_read() -> None:
    """Unknown attributes and values, too many, the same in both minterms."""
    found = infer(opened(COLUMNS, made(50), Epsilon(9), unit=PEOPLE), NAMES, 1, 10, spend=Epsilon(1))
    for wrong in (["a", "b", "c"], ["height"], [], "a", ["a", "a"]):
        refused("bad-parameter", found.table, wrong)
    for wrong in ({"a": 1}, {"c": "w"}, {"d": 9.0}, {"d": True}, {}, ["a"]):
        refused("bad-parameter", found.minterm, wrong)
    refused("bad-parameter", found.implication, {"a": True}, {"a": False})
    refused("bad-parameter", found.implication, {"a": True, "c": "x"}, {"b": False})
    refused("bad-parameter", found.implication, {"a": True}, {"b": False}, "other")


def test_so_many_sets_of_minterms_are_told_E49() -> None:
    """E49: of k truth values there are C(k, 2l) 2^(2l) minterms of 2l literals, so 2^that sets; 2^l is printed.

    k = 3, l = 1, by enumeration: 12 minterms, each told by a release of single columns; printed, 6.
    """
    names = ["a", "b", "e"]
    rng = np.random.default_rng(49)
    data = {name: rng.random(400) < 0.5 for name in names} | {"pid": np.arange(400)}
    oracle = exact(opened(dict.fromkeys(names, sulq.Bool()), data, Epsilon(900), unit=PEOPLE))
    found = infer(oracle, names, 1, 40, spend=STILL)
    minterms = {
        frozenset(zip(chosen, signs, strict=True))
        for chosen in itertools.combinations(names, 2)
        for signs in itertools.product((False, True), repeat=2)
    }
    assert len(minterms) == math.comb(3, 2) * 2**2 == 12 != math.comb(3, 2) * 2
    assert all(math.isfinite(found.minterm(dict(one)).value) for one in minterms)
    sets = sum(1 for size in range(13) for _ in itertools.combinations(minterms, size))
    assert sets == 2 ** (math.comb(3, 2) * 2**2) != 2 ** (math.comb(3, 2) * 2)
