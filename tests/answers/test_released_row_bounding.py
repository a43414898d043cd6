"""What an answer says of row bounding."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.released import Noise, Released, heavy_share, kept_rows
from sulq.language.domain import Int, Schema
from sulq.language.facts import Facts, Heavy, TableFacts
from sulq.language.law import LaplaceLaw
from sulq.language.privacy import Epsilon, Unit
from sulq.language.question import Choose, Holistic, Sums, Together
from sulq.language.relation import Join, Table, Where
from sulq.language.rowfn import Lit, col
from sulq.language.score import Rank
from sulq.language.statistic import HeavyPersons

VISITS, PEOPLE, CODES = (Schema(name, ((f"{name}_x", Int(0, 9)),)) for name in ("visits", "people", "codes"))
TABLES = (TableFacts(VISITS), TableFacts(PEOPLE, key="id"), TableFacts(CODES, public=True, rows=3, key="codes_x"))


def facts(unit: Unit, tables: tuple[TableFacts, ...] = TABLES) -> Facts:
    return Facts(VISITS, unit, Epsilon(1), Epsilon(0.5), Epsilon(0.5), tables=tables)


def count(over: object) -> Sums:
    return Sums((Lit(1),), None, (), (), over)


@pytest.mark.parametrize(("rows", "words"), [(20, "20"), (1, "one")])
def test_an_answer_over_a_bounded_table_says_so(rows: int, words: str) -> None:
    """Whatever is asked of it, in however many steps; nothing is said where every row is kept."""
    told = (f"of the kept rows (at most {words} a person)",)
    public = facts(Unit("id", rows))
    joined = Join(Table("visits"), Table("people"), (), person=True)
    for over in (Table(), Table("visits"), Where(Table("visits"), col("visits_x") > 3), joined):
        assert kept_rows(count(over), public) == told
    assert kept_rows(Choose(replace(count(Table("visits")), by=(col("visits_x"),)), Rank(1, 2)), public) == told
    assert kept_rows(Together((count(Table("people")), count(Table("visits")))), public) == told
    for over in (Table("people"), Table("codes")):
        assert kept_rows(count(over), public) == ()
    assert kept_rows(count(Table("visits")), facts(Unit())) == ()
    assert kept_rows(Holistic(HeavyPersons(), over=Table("visits")), public) == ()


def test_the_share_that_was_bought_stands_beside() -> None:
    """Of the table it was bought for; named where there are several."""
    share = Heavy("visits", 0.12, 0.09, 0.15)
    words = "about 12% +- 3% of persons have more rows than are kept"
    several, alone = facts(Unit("id", 20)), facts(Unit("id", 20), ())
    (note,) = kept_rows(count(Table()), replace(alone, heavy=(share,)))
    assert note == f"of the kept rows (at most 20 a person); {words}"
    assert kept_rows(count(Table("visits")), replace(several, heavy=(share,))) == (f"{note} of visits",)
    assert kept_rows(count(Table("people")), replace(several, heavy=(share,))) == ()
    assert words in str(replace(several, heavy=(share,)))


def test_a_share_lies_within_its_interval_and_holds_what_both_counts_allow() -> None:
    """Wherever both counts are within their intervals, their share is within its own; nothing divides by zero."""
    noise = (Noise(LaplaceLaw(Fraction(3)), Fraction(1), 2),)
    radius = noise[0].law.accuracy(0.025)
    for heavy, others in ((12, 88), (0, 5), (-4, -9), (500, 0), (3, 3)):
        found = heavy_share("t", Released(np.array([[heavy, others]], dtype=np.int64), noise))
        assert 0 <= found.low <= found.share <= found.high <= 1
        for up in (-radius, 0, radius):
            for down in (-radius, 0, radius):
                true = max(heavy + up, 0), max(others + down, 0)
                if sum(true):
                    assert found.low <= float(Fraction(true[0], sum(true))) <= found.high
