"""Equal row functions become one object, others stay apart."""

from __future__ import annotations

import itertools

from sulq.answers import wire
from sulq.compile.statements.tally_functions import unite
from sulq.language.rowfn import ROW_FUNCTIONS, Lit, RowFn, case, col, lit, lookup, nearest, outer, route, vector
from tests.expressions import EXAMPLES
from tests.random_tallies import question
from tests.sources.cases import SCHEMA, ask


def test_what_came_over_the_wire_is_one_again() -> None:
    """A vector named in two blocks and a key, and keys of two tallies, are each the same object afterwards."""
    pair = vector(["age", "pay"])
    leaf = route("city", [[0, -1, -2]])
    first = ask(pair, outer(pair), by=(nearest(pair, [[0, 0], [1, 1]]),))
    second = ask(lit(1), where=case((col("age") > 3, 1), otherwise=0) > 0, by=(leaf, col("city")))
    third = ask(lit(1), by=(leaf,))
    given = [wire.decode(wire.encode(tally)) for tally in (first, second, third)]
    assert given[0].blocks[0].fn is not given[0].blocks[1].fn.vector
    one, two, three = unite(given)
    assert one.blocks[0].fn is one.blocks[1].fn.vector is one.by[0].fn.vector
    assert two.by[0].fn is three.by[0].fn
    assert two.by[0].fn.keys[0] is two.by[1].fn
    assert two.blocks[0].fn is three.blocks[0].fn
    assert [wire.encode(tally) for tally in (one, two, three)] == [wire.encode(tally) for tally in given]


def test_constants_that_are_equal_and_not_the_same_stay_apart() -> None:
    """1, 1.0 and True compare equal and mean different things, as do 0.0 and -0.0; so do tables of them."""
    constants = (1, 1.0, True, 0, 0.0, -0.0, False, "1", "True")
    fns = [Lit(constant) for constant in constants]
    tables = [lookup(col("city"), [value, 2]) for value in (1, 1.0, 0.0, -0.0)]
    united = unite([ask(*(fn for fn in fns if not isinstance(fn.value, (str, bool))), *tables)])[0]
    for a, b in itertools.combinations(united.blocks, 2):
        assert a.fn is not b.fn
    same = unite([ask(lit(1), lit(1), lookup(col("city"), [1, 2]), lookup(col("city"), [1, 2]))])[0]
    assert same.blocks[0].fn is same.blocks[1].fn
    assert same.blocks[2].fn is same.blocks[3].fn


def test_what_differs_in_its_own_constants_alone_is_left_as_it_is() -> None:
    """A vector whose coordinates name equal constants, each its own, is the same object afterwards."""
    pair = vector([(col("age") - 1) / 2, (col("pay") - 1) / 2])
    assert unite([ask(pair, outer(pair))])[0].blocks[0].fn is pair
    other = vector([(col("age") - 1) / 2, (col("age") - 1) / 2])  # control: what is worked out twice is made one
    united = unite([ask(other)])[0].blocks[0].fn
    assert united is not other
    assert united.items[0] is united.items[1]


def test_every_node_is_united_with_its_own_copy_and_no_other() -> None:
    """Each row function's example and its decoded copy become one; no two different examples do."""
    known = unite([question([], SCHEMA, where=None)])
    assert known[0].blocks == ()
    copies: list[RowFn] = [wire.decode(wire.encode(EXAMPLES[node])) for node in ROW_FUNCTIONS]
    tallies = [ask(where=fn) for fn in (*EXAMPLES.values(), *(copies))]
    united = [tally.where for tally in unite(tallies)]
    half = len(copies)
    named = {type(fn): fn for fn in united[:half]}
    assert all(named[type(fn)] is fn for fn in united[half:])
    assert len({id(fn) for fn in united}) == half
    assert all(wire.encode(fn) == wire.encode(EXAMPLES[type(fn)]) for fn in united)
