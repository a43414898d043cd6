"""Keys: every row lies in one public cell or in none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema
from sulq.language.kinds import Code
from sulq.language.rowfn import Bins, Bucket, Col, Each
from sulq.language.rowfn.base import evaluate
from tests.frames import Frame

SCHEMA = Schema.of(
    "t",
    {
        "n": Int(-3, 4),
        "vast": Int(-(2**40), 2**40),
        "r": Real(0, 1, grid=1 / 4),
        "f": Bool(),
        "c": Category(["u", "v"]),
        "d": Date("2020-01-01", "2020-12-31"),
    },
)


def found(fn, rows):
    cells = evaluate(fn, Frame(SCHEMA, rows))
    missing = np.zeros(len(rows), bool) if cells.missing is None else cells.missing
    return [None if gone else int(code) for code, gone in zip(cells.values, missing, strict=True)]


def test_bins_are_half_open_and_the_last_is_closed():
    """An edge belongs to the bin it opens; the last edge to the last bin; outside is no bin at all."""
    fn = Bins(Col("n"), (-1, 1, 3))
    assert found(fn, [{"n": n} for n in (-3, -2, -1, 0, 1, 2, 3, 4, None)]) == [None, None, 0, 0, 1, 1, 1, None, None]
    assert fn.kind(SCHEMA) == Code(((-1, 1), (1, 3)), nullable=True)
    quarter = Bins(Col("r"), (0, 0.25, 0.75, 1))
    assert found(quarter, [{"r": r} for r in range(5)]) == [0, 1, 1, 2, 2]


def test_bins_that_cover_the_bounds_drop_only_missing_values():
    """A bin's key is nullable for a missing value or for what lies outside; a filled value inside is always in one."""
    filled = Col("n").fill(0)
    assert Bins(filled, (-3, 0, 4)).kind(SCHEMA).nullable is False
    assert Bins(filled, (-2, 0, 4)).kind(SCHEMA).nullable is True
    assert Bins(Col("n"), (-3, 0, 4)).kind(SCHEMA).nullable is True


def test_bins_of_dates_are_written_as_dates():
    """Edges of a date column are ISO dates."""
    fn = Bins(Col("d"), ("2020-01-01", "2020-07-01", "2020-12-31"))
    first = SCHEMA.find("d").low
    assert found(fn, [{"d": first}, {"d": first + 181}, {"d": first + 182}, {"d": first + 365}]) == [0, 0, 1, 1]
    assert fn.kind(SCHEMA).labels == (("2020-01-01", "2020-07-01"), ("2020-07-01", "2020-12-31"))


@pytest.mark.parametrize("edges", [(0, 0), (1, 0), (0, 2, 1), (0, 1.5, 1.5)])
def test_edges_must_increase(edges):
    """Equal or falling edges would make bins overlap (trap 9)."""
    with pytest.raises(QuestionError) as refusal:
        Bins(Col("n"), edges).kind(SCHEMA)
    assert refusal.value.code == "bad-literal"


def test_a_bin_needs_two_edges():
    """One edge bounds nothing."""
    with pytest.raises(QuestionError):
        Bins(Col("n"), (1,))


def test_each_names_every_whole_value():
    """Whole numbers, truth values, days and categories are their own keys."""
    assert Each(Col("n")).kind(SCHEMA).labels == tuple(range(-3, 5))
    assert found(Each(Col("n")), [{"n": n} for n in (-3, 4, None)]) == [0, 7, None]
    assert Each(Col("f")).kind(SCHEMA) == Code((False, True))
    assert found(Each(Col("f")), [{"f": 0}, {"f": 1}, {"f": None}]) == [0, 1, None]
    assert Each(Col("c")).kind(SCHEMA) == Col("c").kind(SCHEMA)
    assert found(Each(Col("c")), [{"c": 1}]) == [1]
    assert Each(Col("n") * 3 - 1).kind(SCHEMA).labels == tuple(range(-10, 12))


def test_each_is_refused_for_parts_and_for_too_many_values():
    """A key has at most 2^20 labels, and only whole ones (T74)."""
    for name, code in (("vast", "too-large"), ("r", "wrong-kind")):
        with pytest.raises(QuestionError) as refusal:
            Each(Col(name)).kind(SCHEMA)
        assert refusal.value.code == code


def test_all_rows_of_a_person_share_a_bucket_SR11():
    """A bucket is a function of the person alone, in any batch."""
    people = np.random.default_rng(1).integers(0, 2**60, 200)
    rows = [{"person": person, "n": n} for person, n in itertools.product(people, (0, 1, None))]
    buckets = found(Bucket(16, salt=5), rows)
    assert all(len(set(buckets[i : i + 3])) == 1 for i in range(0, len(buckets), 3))
    assert Bucket(16).kind(SCHEMA) == Code(tuple(range(16)), nullable=False)


def test_buckets_are_nearly_uniform_and_pairwise_independent_SR11():
    """Over salts two people meet in a bucket as often as chance has it; over people all buckets fill alike."""
    rng = np.random.default_rng(2)
    people = [0, 1, 2**30, 2**60 - 1, *rng.integers(0, 2**60, 4)]
    salts, parts = 4000, 8
    table = np.array([found(Bucket(parts, salt), [{"person": p} for p in people]) for salt in range(salts)])
    for i, j in itertools.combinations(range(len(people)), 2):
        counts = np.bincount(table[:, i] * parts + table[:, j], minlength=parts**2)
        assert stats.chisquare(counts).pvalue > 1e-9
    crowd = np.array(found(Bucket(parts, 7), [{"person": p} for p in rng.integers(0, 2**60, 40_000)]))
    assert stats.chisquare(np.bincount(crowd, minlength=parts)).pvalue > 1e-9


def test_the_uniformity_test_finds_a_lopsided_hash():
    """Control: a hash that favours one part by a tenth fails the same test."""
    rng = np.random.default_rng(3)
    lopsided = np.minimum(rng.integers(0, 8 * 11, 40_000) // 10, 7)
    assert stats.chisquare(np.bincount(lopsided, minlength=8)).pvalue < 1e-9


@pytest.mark.parametrize(
    ("parts", "salt"), [(0, 0), (2**20 + 1, 0), (True, 0), (2.0, 0), (2, 0.5), (2, True), (2, 2**54)]
)
def test_buckets_have_whole_parts_and_salts(parts, salt):
    """A number of parts from 1 to 2^20 and a whole salt, or a refusal."""
    with pytest.raises(QuestionError):
        Bucket(parts, salt)
