"""Folds: the same sums however rows are cut, no row past its guard, none that looks at another."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from sulq.kernel import matrix, programs
from sulq.kernel.facts import Refused
from sulq.kernel.matrix import Batch, Kept, fold, narrow, read, text, vectors
from sulq.kernel.matrix import stored as in_memory
from sulq.kernel.moves import Norms
from sulq.kernel.programs import Box, Key, Program, Rule, Stack, Step, Sum, Unit, box_of, certify, check
from tests.counts import count, generator
from tests.kernel import folds
from tests.kernel.folds import column, constant, least, term

STACK = 3
TABLE = ("data", "kept0")
PROGRAM = Program(
    ("c0", "c1"),
    (column(0), column(1), folds.missing(1), Stack((Unit(0, -9, 9), Unit(1, -9, 9)), 2)),
    (Sum("products", 3),),
)


def norms(difference: list[np.ndarray]) -> Norms:
    """Norms of one sum's difference, over all cells together."""
    flat = np.abs(np.concatenate([each.ravel() for each in difference]).astype(object))
    return Norms(int(flat.sum()), int((flat * flat).sum()), int(flat.max()))


def past(found: Norms, bound: Norms) -> bool:
    """Whether a move is farther than its bound."""
    return found.l1 > bound.l1 or found.l2_squared > bound.l2_squared or found.coordinate > bound.coordinate


def one(steps: tuple, *sums: Sum) -> Program:
    """A program over one column."""
    return Program(("a",), steps, sums)


def given(values: object, kind: type = np.float64) -> list[Batch]:
    """One batch of one column."""
    cells = np.array(values, dtype=kind)
    return [Batch(len(cells), [(cells, None)])]


def test_no_program_moves_farther_than_certified_nor_depends_on_its_batches_SR1_SR16() -> None:
    """Random programs and neighbours, 0 violations; the control: half of the certified bound is passed often."""
    planned = count("programs of folds against neighbouring tables", short=250, long=100_000)
    done, seed, seen, halved, refused = 0, 0, Counter(), 0, 0
    while done < planned:
        rng = generator(f"folds {seed}")
        seed += 1
        program = folds.program(rng)
        rows, size = rng.randint(1, 3), rng.randint(1, 14)
        try:
            bounds = certify(program, folds.columns(), rows, every=True)
        except Refused:
            refused += 1
            continue
        table = folds.table(rng, size)
        whole = fold(program, folds.batches(table, 100))
        cut = fold(program, folds.batches(table, rng.randint(1, 4)), workers=rng.randint(1, 3))
        assert all(np.array_equal(a, b) for a, b in zip(whole, cut, strict=True)), f"seed {seed - 1}"
        gone = rng.sample(range(size), min(rows, size))
        less = fold(program, folds.batches(folds.taken(table, [i for i in range(size) if i not in gone]), 3))
        other = [(values.copy(), missing.copy()) for values, missing in table]
        for (values, missing), (new, none) in zip(other, folds.table(rng, size), strict=True):
            values[gone], missing[gone] = new[gone], none[gone]
        changed = fold(program, folds.batches(other, 5))
        for i, bound in enumerate(bounds):
            single, pair = norms([whole[i] - less[i]]), norms([whole[i] - changed[i]])
            assert not past(single, bound.moves.single), f"seed {seed - 1}"
            if program.sums[i].cells == 1:  # else rows may change their cells: those are apart, not a pair
                either = bound.moves.pair
                if program.sums[i].keys:
                    either = Norms(*map(max, either, bound.moves.single))
                assert not past(pair, either), f"seed {seed - 1}"
            halved += past(single, replace(bound.moves.single, l1=bound.moves.single.l1 // 2))
            seen[program.sums[i].kind] += 1
        done += 1
    assert len(seen) == 3
    assert min(seen.values()) > planned // 20
    assert halved > planned // 20
    assert refused < planned


def test_a_step_that_looks_at_other_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a list with a running sum in it lets one row move what many others add."""
    program = one((column(0), Step("cumsum", (0,)), Stack((Unit(1, 0, 100),))), Sum("vectors", 2))
    with pytest.raises(Refused):
        check(program)
    running = Rule("n", "", lambda _, __, of: np.cumsum(of))
    monkeypatch.setitem(programs.STEPS, "cumsum", running)
    bound = certify(program, (folds.COLUMNS[2],), 1, every=True)[0].moves.single.l1
    full, less = fold(program, given([9, 9, 9, 9, 50]))[0], fold(program, given([9, 9, 9, 50]))[0]
    assert abs(int(full[0, 0] - less[0, 0])) < bound  # one at the end is within it
    full, less = fold(program, given([90, *[0] * 9]))[0], fold(program, given([0] * 9))[0]
    assert int(full[0, 0] - less[0, 0]) > bound


@pytest.mark.parametrize("name", ["sort", "exp", "log", "power", "roll", "mean", "argsort", "eval", "fft"])
def test_functions_that_are_not_of_the_list_are_refused_SR16(name: str) -> None:
    """None that mixes rows, and none whose rounding may follow from where a row stands in its batch."""
    with pytest.raises(Refused):
        check(one((column(0), Step(name, (0,)), Stack((Unit(1, 0, 1),))), Sum("vectors", 2)))


def test_codes_out_of_range_are_no_cell() -> None:
    """They neither fail nor reach another cell; the control: a careless count fails for one row and not for others."""
    codes = [0, 1, -1, 2, 2**40, -(2**60), 1]
    keys = (Key(0, 2), Key(0, 2))
    program = one((column(0), term(1)), Sum("vectors", 1, keys=keys[:1]), Sum("vectors", 1, keys=keys))
    assert [found.tolist() for found in fold(program, given(codes, np.int64))] == [[[1], [2]], [[1], [0], [0], [2]]]
    assert fold(program, given([np.nan, np.inf, -np.inf, 1e300, 1.0]))[0].tolist() == [[0], [1]]
    with pytest.raises(ValueError, match="negative"):
        np.bincount(np.array(codes))


def test_NaN_is_a_bound_and_no_more() -> None:
    """The control: a careless clip leaves it, and one row takes the whole sum away."""
    program = one((column(0), Stack((Unit(0, -3, 5),))), Sum("vectors", 1))
    assert fold(program, given([np.nan, 4.0, np.inf]))[0].tolist() == [[-3 + 4 + 5]]
    assert np.isnan(np.clip(np.array([np.nan, 4.0]), -3, 5).sum())


def test_a_vector_past_its_guard_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was worked out; the control: without the guard it moves the sum by more than is certified."""
    units = (Unit(0, -100, 100), Unit(0, -100, 100))
    ball = one((column(0), Stack(units, ball=10)), Sum("vectors", 1), Sum("products", 1))
    length = one((column(0), Stack(units, l1=10)), Sum("vectors", 1))
    bound = certify(ball, (folds.COLUMNS[2],), 1, every=True)[0].moves.single
    assert (bound.l2_squared, bound.l1) == (100, 15)
    assert fold(ball, given([100.0, 7.0]))[0].tolist() == [[7, 7]]
    assert fold(length, given([100.0, 5.0, 6.0]))[0].tolist() == [[5, 5]]
    short = one((column(0), Stack(units, ball=10, shorten=True)), Sum("vectors", 1))
    assert fold(short, given([100.0]))[0].tolist() == [[7, 7]]
    monkeypatch.setattr(matrix, "_guard", lambda *_: None)
    assert past(norms(fold(ball, given([100.0]))[:1]), bound)


def test_a_mistake_in_shortening_meets_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector that is shortened too little is zero: shortening is not believed."""
    short = one((column(0), Stack((Unit(0, -99, 99), Unit(0, -99, 99)), ball=10, shorten=True)), Sum("vectors", 1))
    monkeypatch.setattr(matrix, "_shorten", lambda *_: None)
    assert fold(short, given([90.0, 3.0]))[0].tolist() == [[3, 3]]


def test_an_L1_guard_holds_whatever_was_worked_out_S4_10(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector past its sum of absolute coordinates is zero, or shortened toward zero first; signs do not cancel.

    Control: a guard that adds the coordinates with their signs lets a vector of zero sum by, past every bound.
    """
    opposite = Stack((Unit(0, -99, 99), Unit(2, -99, 99)), l1=20)
    steps = (column(0), constant(0), Step("subtract", (1, 0)), opposite)
    program = one(steps, Sum("vectors", 3), Sum("products", 3))
    bounds = [each.moves.single for each in certify(program, (folds.COLUMNS[2],), 1, every=True)]
    assert [(bound.l1, bound.l2_squared) for bound in bounds] == [(20, 400), (400, 160_000)]
    assert [found.tolist() for found in fold(program, given([90.0, 10.0]))] == [[[10, -10]], [[100, -100, 100]]]
    short = replace(program, steps=(*steps[:3], replace(opposite, shorten=True)))
    assert fold(short, given([90.0]))[0].tolist() == [[10, -10]]
    assert fold(short, given([0.0, 11.0]))[0].tolist() == [[10, -10]]
    with monkeypatch.context() as patch:
        patch.setattr(matrix, "_shorten", lambda *_: None)  # shortening is not believed
        assert fold(short, given([90.0, 3.0]))[0].tolist() == [[3, -3]]
    monkeypatch.setattr(np, "abs", lambda values: values)
    assert past(norms(fold(program, given([90.0]))[:1]), bounds[0])


def test_vectors_are_shortened_toward_zero_exactly_S4_10_SR16() -> None:
    """trunc(q c / |q|_1) of whole numbers, whatever their size; the control: rounded, some leave the ball."""
    rng, left = generator("shortened in L1"), 0
    for _ in range(300):
        width, top = rng.randint(1, 6), rng.choice((3, 50, 2**15, 2**22))
        length, row = rng.randint(1, top), [rng.randint(-top, top) for _ in range(width)]
        steps = (*map(constant, row), Stack(tuple(Unit(i, -top, top) for i in range(width)), l1=length, shorten=True))
        norm = sum(map(abs, row))
        wanted = row if norm <= length else [(abs(q) * length // norm) * (1 if q > 0 else -1) for q in row]
        assert fold(one(steps, Sum("vectors", width)), [Batch(1, [None])])[0].tolist() == [wanted]
        left += norm > length and sum(abs(round(q * length / norm)) for q in row) > length
    assert left > 10


def test_sums_that_pass_2_53_are_cut_before_they_do() -> None:
    """Exact where a careless sum of doubles loses rows; and saturated, not wrapped, past 2^62."""
    program = one((column(0), Stack((Unit(0, 0, 2**52),))), Sum("vectors", 1))
    cells = [2.0**52, 2.0**52, *[1.0] * 6]
    assert fold(program, given(cells))[0].tolist() == [[2**53 + 6]]
    careless = 0.0
    for cell in cells:
        careless += cell
    assert int(careless) != 2**53 + 6
    assert fold(program, given([2.0**52] * 5000))[0].tolist() == [[2**62]]


def test_nothing_is_written_where_others_read() -> None:
    """Columns may be read-only; a vector that several sums, a product and a key read is the same for each."""
    cells = np.arange(-6, 6, dtype=np.int64)
    cells.setflags(write=False)
    steps = (
        column(0),
        Stack((Unit(0, -5, 5), Unit(0, 0, 3)), ball=4, shorten=True),
        least(1, (-4, -4, 4), (12, 0, 19)),
        least(1, (2, 1, 0)),
        Stack((Unit(3, -50, 50),)),
        constant(1),
        Step("bitwise_and", (2, 5)),
    )
    sums = (Sum("vectors", 1), Sum("products", 1), Sum("vectors", 1, keys=(Key(6, 2),)), Sum("vectors", 4))
    whole = fold(one(steps, *sums), [Batch(12, [(cells, None)])])
    for i, each in enumerate(sums):
        assert fold(one(steps, each), [Batch(12, [(cells, None)])])[0].tolist() == whole[i].tolist()
    assert whole[2].sum(axis=0).tolist() == whole[0][0].tolist()


def test_columns_of_other_lengths_stop_a_fold() -> None:
    """Cells of other rows beside each other would be two people's."""
    program = Program(("a", "b"), (column(0), column(1), Stack((Unit(0, 0, 1), Unit(1, 0, 1)))), (Sum("vectors", 2),))
    with pytest.raises(LookupError):
        fold(program, [Batch(3, [(np.zeros(3), None), (np.zeros(1), None)])])


def test_rows_without_a_key_are_in_no_cell_of_several() -> None:
    """By one, two and three keys, beside a condition too; the control: counted row by row."""
    keys = (Key(0, 3), Key(1, 2), Key(2, 4))
    sums = tuple(
        Sum("vectors", 4, keys=each + where)
        for each in (keys[:1], keys[1:], (keys[2], keys[0]), keys)
        for where in ((), (Key(3, 1),))
    )
    steps = (column(0), column(1), column(2), Step("logical_not", (0,)), term(2))
    program = Program(("a", "b", "c"), steps, sums)
    rows = np.random.default_rng(0).integers(-1, 5, (200, 3))
    found = fold(program, [Batch(200, [(rows[:, i], None) for i in range(3)])])
    for each, total in zip(sums, found, strict=True):
        own = [[int(row[key.of] if key.of < 3 else not row[0]) for key in each.keys] for row in rows]
        there = Counter(tuple(r) for r in own if all(0 <= x < k.size for x, k in zip(r, each.keys, strict=True)))
        cells = itertools.product(*(range(key.size) for key in each.keys))
        assert total[:, 0].tolist() == [2 * there[cell] for cell in cells]


def test_far_more_cells_or_pairs_than_rows_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, vectors and tables; the control: the same where all cells are looked at."""
    units = np.arange(12, dtype="<i8").tobytes()
    sums = (
        Sum("vectors", 2, keys=(Key(0, 90),)),
        Sum("vectors", 1, keys=(Key(0, 90),)),
        Sum("table", 0, units=units, width=2, keys=(Key(0, 90),)),
    )
    program = one((column(0), Stack((Unit(0, -5, 50), Unit(0, 0, 3), Unit(0, 1, 2))), term(1)), *sums)
    cells = np.array([-1, 0, 5, 5, 1, 89, 95, 3])
    few = fold(program, [Batch(1, [(cells[i : i + 1], None)]) for i in range(8)])
    many = fold(program, [Batch(800, [(np.repeat(cells, 100), None)])])
    assert all((100 * a == b).all() for a, b in zip(few, many, strict=True))
    monkeypatch.setattr(matrix, "DENSE", 4)
    assert (fold(program, given(cells, np.int64))[2] == few[2]).all()
    assert few[2][5].tolist() == [20, 22]


def test_a_table_beside_a_sum_that_reads_none_is_nothing() -> None:
    """Whatever its bytes and width are: a sum of vectors is the same, and does not fail once it is paid for."""
    program = one((column(0), Stack((Unit(0, -5, 5),))), Sum("vectors", 1), Sum("vectors", 1, units=b"123", width=0))
    assert [each.tolist() for each in fold(program, given([1.0, 9.0]))] == [[[6]], [[6]]]


def test_without_scipy_the_sums_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """One coordinate after another."""
    vector = Stack((Unit(0, -5, 5), Unit(0, 0, 3), Unit(0, 1, 2)))
    sums = (Sum("vectors", 1, keys=(Key(0, 4),)), Sum("vectors", 1, 2, keys=(Key(0, 4),)))
    program = one((column(0), vector, Stack((Unit(0, -2, 2),))), *sums)
    cells = given(np.random.default_rng(1).integers(-9, 9, 500), np.int64)
    found = [each.tolist() for each in fold(program, cells)]
    monkeypatch.setattr(matrix, "_sparse", lambda: None)
    assert [each.tolist() for each in fold(program, cells)] == found


def test_nothing_of_a_program_is_remembered_T39(monkeypatch: pytest.MonkeyPatch) -> None:
    """An equal program that another asked for takes as long: each is looked at for itself, whenever it is run."""
    looked: list[object] = []
    real = matrix.check
    monkeypatch.setattr(matrix, "check", lambda program: looked.append(program) or real(program))
    first, second = (one((column(0), Stack((Unit(0, 0, 1),))), Sum("vectors", 1)) for _ in range(2))
    assert first == second
    for program in (first, second, first):
        fold(program, given([1.0]))
    assert len(looked) == 3


# Columns in memory


def stored(order: list[int], cells: dict[str, np.ndarray]):
    """A table that gives its rows in some order, in pieces."""

    def ask(statement: str):
        asked = statement.removeprefix("SELECT rowid, ").removesuffix(" FROM data.kept0").split(", ")
        for start in range(0, len(order), 3):
            rows = np.array(order[start : start + 3])
            yield [(rows, None), *((cells[name][rows], None) for name in asked)], len(rows)

    return ask


def test_a_statement_is_made_of_names_alone() -> None:
    """A name of another form would be text of somebody's."""
    assert text(TABLE, ("c0", "p")) == "SELECT c0, p FROM data.kept0"
    assert text(("kept",), ("c0",), numbered=True) == "SELECT rowid, c0 FROM kept"
    for table, columns in (
        (TABLE, ()),
        (TABLE, ("c0 + c1",)),
        (TABLE, ("C0",)),
        (("kept; DROP",), ("c0",)),
        (("",), ("c0",)),
    ):
        with pytest.raises(Refused):
            text(table, columns)


def test_cells_meet_by_the_numbers_of_their_rows() -> None:
    """Columns read in different orders; the control: in the order they came in the sums are others."""
    rng = random.Random(0)
    cells = {name: np.array([rng.randint(-9, 9) for _ in range(10)]) for name in ("c0", "c1")}
    found, wrong = {}, {}
    for name in cells:
        order = rng.sample(range(10), 10)
        found |= read(stored(order, cells), TABLE, (name,), 10)
        wrong[name] = cells[name][order]
    columns = [found[name].values for name in cells]
    assert [each.tolist() for each in columns] == [each.tolist() for each in cells.values()]
    sums = fold(PROGRAM, in_memory(TABLE, 10, list(found.values()), {}).parts(4))[0]
    assert int(sums[0, 1]) == int(cells["c0"] @ cells["c1"]) != int(wrong["c0"] @ wrong["c1"])
    with pytest.raises(LookupError):
        read(stored(list(range(9)), cells), TABLE, ("c0",), 10)


def test_a_column_or_a_vector_of_other_rows_is_not_taken() -> None:
    """Whoever keeps them may give a wrong one: of another table or number of rows, or a vector of other bounds."""
    cells = {name: np.arange(7) for name in ("c0", "c1")}
    right = read(stored(list(range(6)), cells), TABLE, ("c0", "c1"), 6)
    more = read(stored(list(range(7)), cells), TABLE, ("c0", "c1"), 7)

    def folded(columns, made, count):
        given = [columns.get(name) for name in PROGRAM.columns]
        return fold(PROGRAM, in_memory(TABLE, count, given, {STACK: made} if made else {}).parts(4))

    made = vectors(PROGRAM, STACK, TABLE, 6, list(right.values()))
    assert folded(right, made, 6)[0].tolist() == folded(right, None, 6)[0].tolist()
    fewer = read(stored(list(range(5)), {"c0": np.arange(6)}), TABLE, ("c0",), 5)
    other = {"c0": replace(right["c0"], table=("data", "kept1"))}
    wide = replace(PROGRAM.steps[STACK], units=(Unit(0, -9, 9), Unit(1, -9, 10)))
    wide = replace(PROGRAM, steps=(*PROGRAM.steps[:STACK], wide))
    for columns, known, size in (
        (right | other, None, 6),
        (right | fewer, None, 6),
        (right, None, 5),
        (right, replace(made, table=("data", "kept1")), 6),
        (right, vectors(PROGRAM, STACK, TABLE, 7, list(more.values())), 6),
        (right, vectors(wide, STACK, TABLE, 6, list(right.values())), 6),
        (right, right["c0"], 6),
        ({"c0": right["c0"]}, None, 6),
    ):
        with pytest.raises((LookupError, TypeError)):
            folded(columns, known, size)
    for columns in (right | other, right | fewer, more):  # nor is a vector made of them
        with pytest.raises(LookupError):
            vectors(PROGRAM, STACK, TABLE, 6, list(columns.values()))
    for place in (0, 9):
        with pytest.raises(Refused):
            vectors(PROGRAM, place, TABLE, 6, list(right.values()))


def test_vectors_that_are_known_give_the_same_sums_and_need_no_column() -> None:
    """Read back as they were made, in however many parts, one for two steps too."""
    cells = {"c0": np.arange(-8, 4), "c1": np.arange(12) - 3}
    columns = list(read(stored(list(range(12)), cells), TABLE, ("c0", "c1"), 12).values())
    made = vectors(PROGRAM, STACK, TABLE, 12, columns)
    assert made.box == box_of(PROGRAM.steps[STACK])
    assert made.values.nbytes == 12 * 3
    first = fold(PROGRAM, in_memory(TABLE, 12, columns, {}).parts(5))[0]
    for size in (1, 7, 12):
        known = in_memory(TABLE, 12, [None, None], {STACK: made})
        assert fold(PROGRAM, known.parts(size), workers=2)[0].tolist() == first.tolist()
    twice = replace(
        PROGRAM, steps=(*PROGRAM.steps, PROGRAM.steps[STACK]), sums=(Sum("products", 4), Sum("products", 3))
    )
    found = fold(twice, in_memory(TABLE, 12, [None, None], {3: made, 4: made}).parts(5))
    assert [each.tolist() for each in found] == [first.tolist()] * 2


def test_a_vector_that_is_kept_was_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is made; the control: without the guard what is kept is past its bounds."""
    stack = Stack(tuple(Unit(0, -1, 1) for _ in range(100)), ball=1)
    program = Program(("a",), (column(0), stack), (Sum("vectors", 1),))
    columns = [Kept(("t",), np.ones(8, np.int8))]
    assert not vectors(program, 1, ("t",), 8, columns).values[:-1].any()
    monkeypatch.setattr(matrix, "_guard", lambda *_: None)
    assert vectors(program, 1, ("t",), 8, columns).values[:-1].all()


@pytest.mark.parametrize(("low", "high", "size"), [(-128, 127, 1), (-129, 0, 2), (0, 128, 2), (-200, 2**31, 8)])
def test_vectors_are_as_narrow_as_their_bounds(low: int, high: int, size: int) -> None:
    """Both ends, zero and one are held."""
    kind = narrow(Box.of((low,), (high,)))
    assert kind.itemsize == size
    assert [int(np.array(x, dtype=kind)) for x in (low, high, 0, 1)] == [low, high, 0, 1]
