"""Several tallies counted at once have the counts each would have alone, whatever is missing (SR16)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from sulq.compile.statements.common_functions import unite
from sulq.language.domain import Category, Int, Schema
from sulq.language.rowfn import col, lit, route
from sulq.language.tally import Tally
from sulq.sources.folds import joint
from sulq.sources.folds.batch import Batch
from sulq.sources.folds.coordinates import Vectors
from sulq.sources.folds.fold import fold, fold_all
from sulq.sources.folds.joint import LARGEST, Joint, joined
from sulq.sources.folds.partial_sums import Share
from tests import random_tallies

NAMES = [f"a{i}" for i in range(6)]
SCHEMA = Schema.of(
    "data", {**dict.fromkeys(NAMES, Category(("x", "y", "z"))), "y": Category(("no", "yes")), "n": Int(0, 9)}
)


def rows(size: int, *, missing: tuple[str, ...] = (), seed: int = 0) -> Batch:
    """Rows in which some cells of the named columns are missing."""
    rng = np.random.default_rng(seed)
    columns = {
        name: (
            rng.integers(0, len(column.values) if isinstance(column, Category) else 2, size).astype(np.int8),
            rng.random(size) < 0.2 if name in missing else None,
        )
        for name, column in SCHEMA.columns
    }
    return Batch(SCHEMA, size, columns)


def level(where: object = None, times: int = 1) -> list[Tally]:
    """A level of a tree: rows by leaf, attribute and label, for each attribute."""
    leaf = route([col(name) for name in NAMES], [(0, 1, -1, -2), (1, -3, -4, None)])
    return [
        random_tallies.question([lit(times)], SCHEMA, by=(leaf, col(name), col("y")), where=where) for name in NAMES
    ]


def parts(tallies: list[Tally]) -> list[Share | Joint]:
    """How the tallies are counted."""
    vectors = Vectors(SCHEMA, [])
    return joined([Share(tally, SCHEMA, vectors) for tally in unite(tallies)])


@pytest.mark.parametrize("missing", [(), ("a5",), ("a1", "y"), tuple(NAMES)])
@pytest.mark.parametrize("where", [None, col("n") < 1])
def test_SR16_the_same_counts_as_one_by_one(missing: tuple[str, ...], where: object) -> None:
    """With rows nowhere in the tree, with a condition, with cells missing in some batches and not in others."""
    tallies = level(where, times=3)
    batches = [rows(400), rows(300, missing=missing, seed=1), rows(200, seed=2)]
    want = [fold(tally, SCHEMA, batches) for tally in tallies]
    assert sum(map(np.count_nonzero, want)) > 20 * len(want) / 2
    for workers in (1, 2):
        for one, other in zip(fold_all(tallies, SCHEMA, batches, workers=workers), want, strict=True):
            assert one.tolist() == other.tolist()


def test_any_order_of_keys() -> None:
    """Tallies that name the same keys in other orders, and one that names a part of them."""
    attributes = [col(name) for name in NAMES[:3]]
    tallies = [random_tallies.question([lit(1)], SCHEMA, by=by) for by in itertools.permutations(attributes)]
    tallies += [random_tallies.question([lit(1)], SCHEMA, by=(attributes[2],))]
    assert [type(part) for part in parts(tallies)] == [Joint]
    batches = [rows(500)]
    for one, tally in zip(fold_all(tallies, SCHEMA, batches), tallies, strict=True):
        assert one.tolist() == fold(tally, SCHEMA, batches).tolist()
    assert fold_all(tallies, SCHEMA, batches)[0].tolist() != fold_all(tallies, SCHEMA, batches)[1].tolist()


def test_a_joint_count_stays_near_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tallies share a count as fit; the rest begin another."""
    found = parts(level())
    assert [type(part) for part in found] == [Joint]
    assert 5 * 3 * 4**6 <= LARGEST < 5 * 3 * 4**7
    monkeypatch.setattr(joint, "LARGEST", 5 * 3 * 4**2)
    assert [type(part) for part in parts(level())] == [Joint] * 3
    monkeypatch.setattr(joint, "LARGEST", 10)
    assert {type(part) for part in parts(level())} == {Share}


def test_what_does_more_than_count_or_counts_other_rows_is_left_alone() -> None:
    """Sums of numbers, tallies without keys, the same key twice, and another condition."""
    by = (col("a0"),)
    tallies = [
        random_tallies.question([lit(1), col("n")], SCHEMA, by=by),
        random_tallies.question([col("n")], SCHEMA, by=by),
        random_tallies.question([lit(1)], SCHEMA),
        random_tallies.question([lit(1)], SCHEMA, by=(col("a0"), col("a0"))),
        random_tallies.question([lit(1)], SCHEMA, by=by),
        random_tallies.question([lit(1)], SCHEMA, by=by, where=col("n") == 0),
    ]
    assert {type(part) for part in parts(tallies)} == {Share}
    batches = [rows(300)]
    for one, tally in zip(fold_all(tallies, SCHEMA, batches), tallies, strict=True):
        assert one.tolist() == fold(tally, SCHEMA, batches).tolist()


def test_tallies_that_name_other_labels_of_a_key_are_left_alone() -> None:
    """One that counts two of three labels, and one that counts all."""
    whole = random_tallies.question([lit(1)], SCHEMA, by=(col("a0"),))
    part = replace(whole, by=(replace(whole.by[0], labels=whole.by[0].labels[:2]),), cells=2)
    batches = [rows(300)]
    want = [fold(tally, SCHEMA, batches).tolist() for tally in (whole, part)]
    assert [one.tolist() for one in fold_all((whole, part), SCHEMA, batches)] == want
    assert want[1] == want[0][:2]
