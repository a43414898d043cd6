"""How long the worst rows of one person take at the cap of `sulq.curator.plan.work`, for each kind of row function.

`python -m benchmarks.work` prints seconds foreseen (without the margin for slower machines) and measured, DuckDB and
NumPy in this process; tests/privacy/test_work.py runs the same on every engine. The constants of `work` are to be
such that measured never passes foreseen.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

import sulq
from sulq.curator.plan import work
from sulq.database import Database
from sulq.errors import QuestionError
from sulq.terms.facts import Facts
from sulq.terms.question import Sums
from sulq.terms.rowfn import Col, Concat, IndexOf, Like, Lit, Logic, Lowered, RowFn, Substring, Trimmed

LONGEST = 1_000
ROWS = 20
MOST = 400  # conditions of one question: past them planning is all that takes time
NOTE = Col("note")
COLUMNS = {"name": sulq.Text(100), "note": sulq.Text(LONGEST)}
UNIT = sulq.Unit("pid", rows=ROWS)
MANY = "".join(map(chr, range(0x4E00, 0x4E00 + 900)))

# What one person's notes hold, and a condition that looks at all of it, the i-th of many.
FAMILIES: dict[str, tuple[str, Callable[[int], RowFn]]] = {
    "any character, of four bytes": ("\U0001f600", lambda i: Like(NOTE, "%" + "_" * 90 + f"z{i}%")),
    "some character, then any": ("e", lambda i: Like(NOTE, "%e" + "_" * 90 + f"z{i}%")),
    "many characters and any": (MANY, lambda i: Like(NOTE, f"%{MANY}_z{i}%")),
    "several parts": ("ea", lambda i: Like(NOTE, "%e_" * 30 + f"z{i}%")),
    "looked for, its beginning missing": ("e", lambda i: Like(NOTE, f"%{i}z" + "e" * 90 + "%")),
    "looked for, its middle missing": ("e", lambda i: Like(NOTE, "%" + "e" * 45 + f"z{i}" + "e" * 45 + "%")),
    "parts looked for": ("e", lambda i: Like(NOTE, "%" + "ee%" * 40 + f"z{i}%")),
    "place": ("\u00e9", lambda i: IndexOf(NOTE, "\u00e9" * 50 + f"z{i}" + "\u00e9" * 50) > 1),
    "lowered": ("\u00c9", lambda i: Lowered(NOTE) == f"x{i}"),
    "trimmed": ("e", lambda i: Trimmed(NOTE, "both", MANY[:500] + "e") == f"x{i}"),
    "cut": ("\u00e9", lambda i: Substring(NOTE, 2 + i, 900) == "x"),
    "joined": ("\u00e9", lambda i: Concat((NOTE, NOTE)) == f"x{i}"),
    "listed": ("e", lambda i: NOTE.isin([f"{'e' * 300}{i}.{j}" for j in range(25)])),
    "compared": ("e", lambda i: "e" * 900 + str(i) == NOTE),
}


def table(person: str | None) -> pa.Table:
    """Three hundred people with a short note each and, if asked for, one with as many and as long as may be."""
    rows = [(str(i), "y", "short") for i in range(300)]
    if person is not None:
        rows += [("p", "x", (f"{i}" + person * (LONGEST // len(person)))[:LONGEST]) for i in range(ROWS)]
    return pa.table(dict(zip(("pid", "name", "note"), map(list, zip(*rows, strict=True)), strict=True)))


def asked(family: str, number: int) -> Sums:
    """So many conditions of a family, all of them looked at on the rows of one person alone."""
    some = tuple(FAMILIES[family][1](i) for i in range(number))
    return Sums((Lit(1),), Logic("and", (Col("name") == "x", Logic("or", some))))


def most(family: str, facts: Facts, limit: float) -> int:
    """How many conditions of a family are accepted at a time limit."""

    def accepted(number: int) -> bool:
        try:
            work.check((asked(family, number),), facts, limit)
        except QuestionError:
            return False
        return True

    low, high = 0, 1
    while accepted(high) and high < MOST:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepted(middle) else (low, middle)
    return low


def seconds(database: Database, question: Sums, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of two asks."""
    taken = []
    for _ in range(2):
        start = clock()
        database.ask(question, spend=sulq.Epsilon(0.01))
        taken.append(clock() - start)
    return min(taken)


def opened(data: object, **options: object) -> Database:
    """A database over one of the tables."""
    return sulq.connect(data, columns=COLUMNS, unit=UNIT, budget=sulq.Epsilon(500), size=300, **options)


def main(limit: float = work.LIMIT) -> None:
    """Print every family on the engines of this process, by the time of its processors."""
    for engine in ("duckdb", "memory"):
        without = opened(table(None), engine=engine)
        for family, (person, _) in FAMILIES.items():
            number = most(family, without.facts, limit)
            question = asked(family, number)
            beside = opened(table(person), engine=engine)
            more = seconds(beside, question, time.process_time) - seconds(without, question, time.process_time)
            foreseen = work.alone((question,), without.facts)
            print(f"{engine:8} {family:36} {number:4} conditions, foreseen {foreseen:.3f} s, measured {more:.3f} s")
            beside.close()
        without.close()


if __name__ == "__main__":
    main()
