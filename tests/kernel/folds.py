"""Random programs, sensible or not, and tables to run them on."""

from __future__ import annotations

import random

import numpy as np

from sulq.kernel.matrix import Batch
from sulq.kernel.programs import STEPS, Key, Program, Stack, Step, Sum, Unit
from sulq.kernel.values import Value, double, integer

FUNCTIONS = {name: len(rule.of) for name, rule in STEPS.items() if rule.of and set(rule.of) == {"n"}}
FUNCTIONS = {name: many for name, many in FUNCTIONS.items() if name not in ("search", "take")}
COLUMNS = (
    integer("TINYINT", -4, 4),
    integer("INTEGER", -(2**31), 2**31 - 1),
    double(),
)
WILD = (0.0, -0.0, 1.0, -3.5, 1e300, -1e300, float("nan"), float("inf"), -float("inf"), 2.0**53, 0.25)
Rows = list[tuple[np.ndarray, np.ndarray]]


def column(place: int) -> Step:
    """A column of the rows."""
    return Step("column", given=(place,))


def missing(place: int) -> Step:
    """Whether a column is missing."""
    return Step("missing", given=(place,))


def constant(value: object) -> Step:
    """A public number."""
    return Step("constant", given=(value,))


def term(value: object, step: int = 0) -> Stack:
    """A vector of one public number: its sum counts rows."""
    return Stack((Unit(step, value, value),))


def least(stack: int, *scores: tuple[object, ...]) -> Step:
    """The least of some scores of a vector."""
    return Step("least", (stack,), scores)


def table(rng: random.Random, size: int) -> Rows:
    """Three columns, with missing cells and doubles of all kinds."""
    cells = [
        np.array([rng.randint(-4, 4) for _ in range(size)], dtype=np.int8),
        np.array(
            [rng.choice((0, 1, -1, 2**31 - 1, -(2**31), rng.randint(-99, 99))) for _ in range(size)], dtype=np.int32
        ),
        np.array([rng.choice(WILD) for _ in range(size)], dtype=np.float64),
    ]
    return [(each, np.array([rng.random() < 0.2 for _ in range(size)], dtype=np.bool_)) for each in cells]


def taken(rows: Rows, places: list[int]) -> Rows:
    """Some of the rows."""
    return [(values[places], missing[places]) for values, missing in rows]


def batches(rows: Rows, size: int) -> list[Batch]:
    """The rows in batches."""
    count = len(rows[0][0])
    cut = [slice(i, min(i + size, count)) for i in range(0, count, size)]
    return [Batch(part.stop - part.start, [(v[part], m[part]) for v, m in rows], part.start) for part in cut]


def columns() -> tuple[Value, ...]:
    """What the columns can be."""
    return COLUMNS


def program(rng: random.Random) -> Program:
    """A program of random steps; some are refused."""
    steps: list[Step | Stack] = [step for i in range(3) for step in (column(i), missing(i))]
    steps += [constant(rng.choice((0, 1, -7, 0.5, float("nan"), True))) for _ in range(2)]

    def number() -> int:
        return rng.choice([i for i, step in enumerate(steps) if not isinstance(step, Stack)])

    def stacks() -> list[int]:
        return [i for i, step in enumerate(steps) if isinstance(step, Stack)]

    for _ in range(rng.randint(3, 9)):
        kind = rng.random()
        if kind < 0.4:
            name = rng.choice(list(FUNCTIONS))
            steps.append(Step(name, tuple(number() for _ in range(FUNCTIONS[name]))))
        elif kind < 0.5:
            steps.append(Step("search", (number(),), tuple(sorted(rng.sample((-1.0, 0.0, 0.5, 3.0), 2)))))
        elif kind < 0.6:
            steps.append(Step("take", (number(),), tuple(rng.randint(-5, 5) for _ in range(rng.randint(1, 4)))))
        elif kind < 0.85 or not stacks():
            steps.append(_stack(rng, number))
        else:
            stack = rng.choice(stacks())
            width = len(steps[stack].units)
            made = [tuple(rng.randint(-3, 3) for _ in range(width + 1)) for _ in range(rng.randint(1, 3))]
            steps.append(least(stack, *made))
    steps.append(_stack(rng, number))
    return Program(
        ("a", "b", "c"), tuple(steps), tuple(_sum(rng, steps, number, stacks()) for _ in range(rng.randint(1, 3)))
    )


def _stack(rng: random.Random, number) -> Stack:
    units = []
    for _ in range(rng.randint(1, 3)):
        low = rng.randint(-4, 4)
        units.append(
            Unit(number(), low, low + rng.choice((0, rng.randint(0, 6))), rng.choice((1.0, 0.5, 2.0, -1.0, 1e300)))
        )
    l1, ball = rng.choice((None, None, rng.randint(0, 9))), rng.choice((None, rng.randint(0, 6)))
    shorten = (l1, ball) != (None, None) and rng.random() < 0.6
    return Stack(tuple(units), rng.choice((None, number())), l1, ball, shorten)


def _sum(rng: random.Random, steps: list[Step | Stack], number, stacks: list[int]) -> Sum:
    keys = tuple(Key(number(), rng.randint(1, 4)) for _ in range(rng.choice((0, 0, 1, 2))))
    keys += rng.choice(((), (), (Key(number(), 1),)))
    kind = rng.choice(("vectors", "vectors", "vectors", "products", "table"))
    if kind == "table":
        width = rng.randint(1, 3)
        units = np.array([rng.randint(-9, 9) for _ in range(width * rng.randint(1, 4))], dtype="<i8").tobytes()
        return Sum("table", number(), units=units, width=width, keys=keys)
    ones = [i for i in stacks if len(steps[i].units) == 1]
    factor = rng.choice((None, rng.choice(ones))) if ones and kind == "vectors" else None
    return Sum(kind, rng.choice(stacks), factor, keys=keys)
