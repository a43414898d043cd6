"""How long the worst rows of one person take at the cap of `sulq.compile.plan.work`, for each kind of row function.

`python -m benchmarks.work` prints seconds foreseen (without the margin for slower machines) and measured, DuckDB and
NumPy in this process; tests/privacy/test_work.py runs the same on every engine. The constants of `work` are to be
such that measured never passes foreseen.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable

import pyarrow as pa

import sulq
from sulq.api.database import Database
from sulq.compile.plan import work
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.question import Sums
from sulq.language.rowfn import Col, Concat, IndexOf, Like, Lit, Logic, Lowered, RowFn, Substring, Trimmed

LONGEST = 1_000
MOST = 1_000  # conditions of one question that are tried
NOTE = Col("note")
COLUMNS = {"name": sulq.Text(100), "note": sulq.Text(LONGEST)}
MANY = "".join(map(chr, range(0x4E00, 0x4E00 + 900)))

# What one person's notes hold, how many there are, and a condition that looks at all of it, the i-th of many. The less
# a condition costs the more notes there are: so that some conditions reach the cap, neither none nor thousands.
FAMILIES: dict[str, tuple[str, int, Callable[[int], RowFn]]] = {
    "any character, of four bytes": ("\U0001f600", 4, lambda i: Like(NOTE, "%" + "_" * 90 + f"z{i}%")),
    "some character, then any": ("e", 4, lambda i: Like(NOTE, "%e" + "_" * 90 + f"z{i}%")),
    "many characters and any": (MANY, 4, lambda i: Like(NOTE, f"%{MANY}_z{i}%")),
    "several parts": ("ea", 20, lambda i: Like(NOTE, "%e_" * 30 + f"z{i}%")),
    "looked for, its beginning missing": ("e", 20, lambda i: Like(NOTE, f"%{i}z" + "e" * 90 + "%")),
    "looked for, its middle missing": ("e", 20, lambda i: Like(NOTE, "%" + "e" * 45 + f"z{i}" + "e" * 45 + "%")),
    "parts looked for": ("e", 100, lambda i: Like(NOTE, "%" + "ee%" * 40 + f"z{i}%")),
    "place": ("\u00e9", 20, lambda i: IndexOf(NOTE, "\u00e9" * 50 + f"z{i}" + "\u00e9" * 50) > 1),
    "lowered": ("\u00c9", 100, lambda i: Lowered(NOTE) == f"x{i}"),
    "trimmed": ("e", 20, lambda i: Trimmed(NOTE, "both", MANY[:500] + "e") == f"x{i}"),
    "cut": ("\u00e9", 100, lambda i: Substring(NOTE, 2 + i, 900) == "x"),
    "joined": ("\u00e9", 20, lambda i: Concat((NOTE, NOTE)) == f"x{i}"),
    "listed": ("e", 1_000, lambda i: NOTE.isin([f"{'e' * 300}{i}.{j}" for j in range(25)])),
    "compared": ("e", 1_000, lambda i: "e" * 900 + str(i) == NOTE),
}


def table(family: str, *, person: bool) -> pa.Table:
    """Three hundred people with a short note each and, if asked for, one with as many and as long as may be."""
    rows = [(str(i), "y", "short") for i in range(300)]
    held, number, _ = FAMILIES[family]
    rows += [("p", "x", (f"{i}" + held * LONGEST)[:LONGEST]) for i in range(number if person else 0)]
    return pa.table(dict(zip(("pid", "name", "note"), map(list, zip(*rows, strict=True)), strict=True)))


def asked(family: str, number: int) -> Sums:
    """So many conditions of a family, all of them looked at on the rows of one person alone."""
    some = tuple(FAMILIES[family][2](i) for i in range(number))
    return Sums((Lit(1),), Logic("and", (Col("name") == "x", Logic("or", some))))


def most(family: str, facts: Facts, limit: float) -> int:
    """How many conditions of a family are accepted at a time limit."""

    def accepted(number: int) -> bool:
        try:
            work.check((asked(family, number),), facts, limit)
        except QuestionError:
            return False
        return True

    return bisect.bisect_left(range(1, MOST + 1), True, key=lambda number: not accepted(number))


def seconds(database: Database, question: Sums, clock: Callable[[], float], times: int = 2) -> float:
    """The shortest of several asks."""
    taken = []
    for _ in range(times):
        start = clock()
        database.ask(question, spend=sulq.Epsilon(0.01))
        taken.append(clock() - start)
    return min(taken)


def opened(data: object, family: str, **options: object) -> Database:
    """A database over one of the tables of a family."""
    unit = sulq.Unit("pid", rows=FAMILIES[family][1])
    return sulq.connect(data, columns=COLUMNS, unit=unit, budget=sulq.Epsilon(500), size=300, **options)


def main(limit: float = work.LIMIT) -> None:
    """Print every family on the engines of this process, by the time of its processors."""
    for engine in ("duckdb", "memory"):
        for family in FAMILIES:
            without, beside = (opened(table(family, person=person), family, engine=engine) for person in (False, True))
            with without, beside:
                number = most(family, without.facts, limit)
                question = asked(family, number)
                more = seconds(beside, question, time.process_time) - seconds(without, question, time.process_time)
                foreseen = work.alone((question,), without.facts)
            print(f"{engine:8} {family:36} {number:4} conditions, foreseen {foreseen:.3f} s, measured {more:.3f} s")


if __name__ == "__main__":
    main()
