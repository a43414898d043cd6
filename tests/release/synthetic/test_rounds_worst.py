"""Which marginal is worst: the choice asked is the one that would be computed from the rows."""

from __future__ import annotations

import numpy as np
import pytest

from sulq import Epsilon, Unit
from sulq.errors import QuestionError
from sulq.kernel.scores import LARGEST_SHIFT
from sulq.language.question import MAX_VALUES
from sulq.release.space import CellSpace
from sulq.release.synthetic import rounds
from sulq.release.synthetic.rounds import SCORE_UNITS_A_ROW, Candidate, max_groups, worst
from tests.learn.cases import exact
from tests.release.synthetic.cases import BINS, NAMES, made, rows, truth


def space_of(db: object) -> CellSpace:
    return CellSpace.of(NAMES, db.facts.schema, BINS)


def test_the_farthest_is_chosen_weighed_and_less_its_noise() -> None:
    """Without noise the choice is the argmax of weight * (L1 distance - noise)."""
    data, db = rows(500), made(500)
    space = space_of(db)
    rng = np.random.default_rng(3)
    pairs = [(0, 1), (0, 2), (1, 3), (2, 3), (3,)]
    for _ in range(10):
        candidates = [
            Candidate(
                places, np.rint(rng.dirichlet(np.ones(space.size(places))) * 500).reshape(space.shape(places)),
                int(rng.integers(1, 4)), float(rng.integers(0, 200)),
            )
            for places in pairs
        ]  # fmt: skip
        scores = [
            c.weight * (np.abs(truth([NAMES[p] for p in c.places], data) - c.expected).sum() - c.noise)
            for c in candidates
        ]
        answer = exact(db).ask(worst(space, candidates), spend=Epsilon(1))
        assert int(answer.released.units[0, 0]) == int(np.argmax(scores))


def test_the_price_does_not_grow_with_marginals_or_cells() -> None:
    """One row spans twice the largest weight, one exchanged twice that, however many cells it could be in."""
    for neighbors, spans in (("add_remove", 2), ("zero_out", 2), ("replace_one", 4)):
        db = made(50, unit=Unit(neighbors=neighbors), **({"size": 50} if neighbors == "zero_out" else {}))
        space = space_of(db)
        laws = []
        for pairs in ([(0, 1)], [(0, 1), (0, 3), (1, 3), (2, 3)]):
            question = worst(space, [Candidate(p, np.zeros(space.shape(p)), 3) for p in pairs])
            law = db.foresee(question, spend=Epsilon(1)).parts[0].laws[0]
            laws.append(float(law.scale))
        assert laws == [spans * 3 * SCORE_UNITS_A_ROW] * 2


def test_many_cells_are_looked_at_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables stay small; a grouped distance never exceeds the true one, and a gross mistake is still seen."""
    monkeypatch.setattr(rounds, "MAX_TABLE_NUMBERS", 120)
    data, db = rows(500), made(500)
    space = space_of(db)
    right = truth(NAMES[:1] + NAMES[3:], data)
    wrong = truth(NAMES[1:2] + NAMES[3:], data).copy()
    wrong[0] += 400
    question = worst(space, [Candidate((0, 3), right), Candidate((1, 3), wrong)])
    tables = [value.table for value in question.counts.values]
    assert sum(len(table) * len(table[0]) for table in tables) <= 120
    assert all(sum(entry) == 1 for table in tables for entry in table)
    answer = exact(db).ask(question, spend=Epsilon(1))
    assert int(answer.released.units[0, 0]) == 1


def test_too_many_are_refused_before_anything_is_asked() -> None:
    """More marginals than a question has values, or more cells than tables: the refusal says what fits."""
    for sizes in ([4] * (MAX_VALUES + 1), [10**6]):
        with pytest.raises(QuestionError, match="fit") as caught:
            max_groups(sizes)
        assert caught.value.code == "too-large"


def test_counts_past_what_a_score_holds_are_cut_off() -> None:
    """A model fitted to vast noise is no reason for a refusal in the middle of a run."""
    question = worst(space_of(made(5)), [Candidate((2,), np.array([1e15, 3.0]))])
    assert question.score.targets == ((LARGEST_SHIFT, 3),)


def test_groups_stay_from_round_to_round_while_they_are_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next round's question has the very tables of the last; where the rows moved elsewhere it has new ones."""
    monkeypatch.setattr(rounds, "MAX_TABLE_NUMBERS", 60)
    space, known = space_of(made(5)), {}
    size = space.size((0, 3))
    first = np.where(np.arange(size) < 2, 100.0, 1.0)
    asked = [
        worst(space, [Candidate((0, 3), counts.reshape(space.shape((0, 3))))], known)
        for counts in (first, 1.1 * first, first[::-1].copy())
    ]
    same, nearly, other = (question.counts.values[0] for question in asked)
    assert len(same.table[0]) < size  # they are groups
    assert nearly is same
    assert other is not same
    assert other.table != same.table
    assert asked[1].score.targets != asked[0].score.targets  # what is expected is this round's own
    fresh = worst(space, [Candidate((0, 3), 1.1 * first.reshape(space.shape((0, 3))))])
    assert fresh.counts.values[0].table == nearly.table
    assert fresh.score == asked[1].score
