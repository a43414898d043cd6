"""Generated neighbours: each pair differs in one person as its relation says, and every kind of person occurs."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from sulq.language.privacy import Unit
from sulq.testing import neighbours
from sulq.testing.neighbours import PERSON, Row, canonical
from tests.privacy.cases import seeded

UNITS = [Unit(None, 1, n) for n in ("add_remove", "replace_one", "zero_out")]
UNITS += [Unit("pid", 2, n, fold) for n in ("add_remove", "replace_one", "zero_out") for fold in (None, "spelling")]


def owned(rows: tuple[Row, ...], unit: Unit) -> dict[object, Counter[str]]:
    """Each person's rows as a bag."""
    found: dict[object, Counter[str]] = {}
    for row in rows:
        if row[PERSON] is not None:
            found.setdefault(canonical(row[PERSON], unit.fold), Counter())[repr(sorted(row.items()))] += 1
    return found


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_each_pair_differs_in_one_person_SR1(unit: Unit) -> None:
    """Others keep all their rows and their order; the number of persons or rows follows the relation (SR1)."""
    rng = seeded("neighbours")
    for _ in range(10):
        rows = neighbours.table(rng, unit, 6)
        for pair in neighbours.pairs(rng, unit, rows):
            assert pair.first == tuple(rows)
            if unit.column is None:
                gone = [repr(row) for row in pair.first]
                came = [repr(row) for row in pair.second]
                changed = sum(((Counter(gone) - Counter(came)) + (Counter(came) - Counter(gone))).values())
                assert changed <= (1 if unit.neighbors == "add_remove" else 2) + (PERSON in pair.what)
                assert unit.neighbors == "add_remove" or len(gone) == len(came)
                continue
            before, after = owned(pair.first, unit), owned(pair.second, unit)
            differing = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
            assert len(differing) <= (2 if unit.neighbors == "replace_one" else 1), pair.what
            if unit.neighbors == "replace_one":
                assert len(before) == len(after)
            if unit.neighbors == "zero_out":
                assert len(pair.first) == len(pair.second)


def test_every_kind_of_person_occurs() -> None:
    """Heavy ones, first ones, rare ones, newcomers of bad cells and rows of nobody are among the pairs."""
    rng = seeded("kinds")
    unit = Unit("pid", 1, fold="spelling")
    words = ("heaviest", "first in the file", "rarest", "bad cells", "nobody", "newcomer", "anyone")
    rows = neighbours.table(rng, unit, 60)
    kinds = " ".join(pair.what for pair in neighbours.pairs(rng, unit, rows))
    assert all(word in kinds for word in words)
    spellings = {row[PERSON] for row in rows if row[PERSON]}
    assert len(spellings) > len({canonical(name, "spelling") for name in spellings})
    many = [neighbours.someone(rng, "p", 3) for _ in range(200)]
    assert {len(person) for person in many} == set(range(1, 8))
    assert any(
        len(person) > 1 and all(row["gain"] == person[0]["gain"] is not None for row in person) for person in many
    )


def test_bad_cells_of_every_kind_are_drawn() -> None:
    """NULL, NaN, infinities, the ends of 64 bits and undeclared categories are all drawn."""
    rng = seeded("cells")
    cells = [value for _ in range(400) for value in neighbours.row(rng, "p", special=1.0).values()]
    assert None in cells
    assert any(isinstance(value, float) and math.isnan(value) for value in cells)
    assert {math.inf, -math.inf, 2**63 - 1, -(2**63), "Jaffa"} <= {*map(_plain, cells)}


def _plain(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def test_rows_become_arrow_tables() -> None:
    """Types follow the declarations, also for no rows and for rows of bad cells only."""
    rng = np.random.default_rng()
    for rows in ([], [neighbours.row(rng, None, special=1.0) for _ in range(50)]):
        table = neighbours.arrow(rows)
        assert table.num_rows == len(rows)
        assert table.schema.names == [*neighbours.SCHEMA.names, PERSON]
    assert table.schema.field("code").type == "int64"
