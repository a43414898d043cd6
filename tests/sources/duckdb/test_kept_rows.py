"""Which rows of a heavy person count: by the person and the row's own content, never by others' (SR2, T14, T16)."""

from __future__ import annotations

import pytest

from sulq.language.domain import Category, Int, Schema
from sulq.language.privacy import Unit
from sulq.language.rowfn import col, each, lit, position
from sulq.sources.duckdb import kept_rows
from tests import counts, generate, random_tallies
from tests.counts import count
from tests.sources import oracle
from tests.sources import plain_reading as reading
from tests.sources.cases import CANARY, KEY, SCHEMA, ask, duck, memory, plain_engine, sums, table

ENGINES = (plain_engine, memory, duck, lambda *given, **more: duck(*given, prepared=False, **more))
IDS = ("plain", "memory", "duckdb", "duckdb unprepared")


@pytest.mark.parametrize("opened", ENGINES, ids=IDS)
def test_removing_one_person_leaves_everybody_elses_kept_rows_SR2(opened: object) -> None:
    """The sums of all persons are those of one person plus those of the rest, wherever that person's rows stood."""
    for seed in range(count("persons removed", short=6, long=300)):
        rng = counts.generator(seed)
        unit = Unit("who", rng.choice((1, 2, 3)), fold=rng.choice((None, "case", "spelling")))
        data = generate.table(rng, unit=unit, size=30)
        people = data.made["who"]
        one = rng.choice(people.cells)
        mine = [i for i, who in enumerate(people.cells) if _same(who, one, people.kind, unit.fold)]
        rest = [i for i in range(data.size) if i not in mine]
        tallies = [random_tallies.tally(rng, data.schema, unit) for _ in range(3)]
        parts = [sums(opened(data.arrow(rows), unit, data.schema), *tallies) for rows in (None, mine, rest)]
        for whole, own, others in zip(*parts, strict=True):
            assert whole == [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(own, others, strict=True)]


def _same(who: object, other: object, kind: object, fold: str | None) -> bool:
    return oracle.canonical(kind, who, fold) == oracle.canonical(kind, other, fold)


@pytest.mark.parametrize("opened", ENGINES, ids=IDS)
def test_order_duplicates_and_deletions_at_the_front_change_no_choice_SR2(opened: object) -> None:
    """Shuffled files keep the same rows; equal rows are interchangeable; a person keeps at most k."""
    rows = [("ann", age, age / 2, "x", None) for age in (1, 2, 3, 4, 4, 4, 5)] + [("bob", 50, 1.0, "y", "b")]
    tally = ask(lit(1), by=(each("age"),))
    unit = Unit("who", 3)
    want = sums(opened(table(rows), unit), tally)
    rng = counts.generator(2)
    for _ in range(4):
        rng.shuffle(rows)
        assert sums(opened(table(rows), unit), tally) == want
        assert (
            sums(
                opened(table([("new", 9, 0.0, "x", None), *rows]), unit),
                ask(lit(1), where=col("age") != 9, by=(each("age"),)),
            )
            == want
        )
    assert sum(cell for (cell,) in want[0]) == 4


def test_the_key_decides_and_nothing_else_does_SR2() -> None:
    """Another key keeps other rows; the same key keeps the same ones, on both engines."""
    rows = [("ann", age, 0.0, "x", None) for age in range(100)]
    tally = ask(lit(1), by=(each("age"),))
    first = sums(duck(table(rows), Unit("who", 5)), tally)
    other = duck(table(rows), Unit("who", 5))
    object.__setattr__(other._tables[0], "key", b"another key")
    assert first == sums(plain_engine(table(rows), Unit("who", 5)), tally)
    assert first != sums(other, tally)


@pytest.mark.parametrize("opened", ENGINES, ids=IDS)
def test_spellings_of_one_person_share_one_allowance_T16(opened: object) -> None:
    """Folded by spelling, case, blanks, forms of Unicode, 1 and 1.0 are one person; no id drops the row.

    Without a fold texts are persons by their bytes, and by case only letters are alike.
    """
    spelled = ["Ann", " ann ", "ANN\t", "ann", "1", "1.0", " 1.00", "é", "e\u0301", None, "", "  "]
    rows = [(who, 1, 0.0, "x", None) for who in spelled]
    for fold, people in (("spelling", 3), ("case", 9), (None, 10)):
        assert sums(opened(table(rows), Unit("who", 1, fold=fold)), ask()) == [[[people]]], fold


@pytest.mark.parametrize("opened", ENGINES, ids=IDS)
def test_zero_out_drops_blanked_rows_and_keeps_the_places_of_others(opened: object) -> None:
    """A row without any declared value is blanked: it counts nothing, and the rows after it stay where they were."""
    rows = [(None, 1, 1.0, "x", None), (None, None, None, None, None), (None, 3, 3.0, "y", None)]
    unit = Unit(neighbors="zero_out")
    places = [ask(lit(1), where=position() == place) for place in range(3)]
    assert sums(opened(table(rows), unit), ask(), *places) == [[[2]], [[1]], [[0]], [[1]]]


def test_texts_cannot_pass_for_other_columns_SR2() -> None:
    """Rows that a plain joining of columns would confuse have different hashes."""
    confusing = [["a\x1fb", "c"], ["a", "b\x1fc"], ["~", "c"], [None, "c"], ["1:a", ""], ["", "1:a"]]
    assert len({reading.row_hash(KEY, "ann", row) for row in confusing}) == len(confusing)


def test_the_key_is_bound_and_never_written() -> None:
    """Neither the key nor a category stands in the SQL of kept rows."""
    schema = Schema("data", (("city", Category((CANARY, "y"))), ("age", Int(0, 1))))
    engine = duck(table(), Unit("who", 1), schema)
    rows = kept_rows.select(engine._tables[0], stored=True)
    assert KEY.hex() not in rows.relation
    assert CANARY not in rows.relation
    assert rows.parameters["key"] == KEY.hex()
    assert SCHEMA.names[0] not in rows.relation
    engine.close()
