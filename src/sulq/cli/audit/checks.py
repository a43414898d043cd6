"""`sulq audit`: checks an installed copy against what it promises, and says pass or fail.

Every check has its controls: the same check on something that is broken on purpose, which must be noticed. All
data is made up here, from a number that is printed, so that what failed can be looked at again; noise is drawn
as ever, from the operating system. No dataset, ledger or budget of anybody's is touched.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.markup import escape
from rich.table import Table

from sulq.api.connect import connect
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.audit.attacks import METHODS, Method, averaging, canaries, differencing, membership, reconstruct, tracker
from sulq.audit.distinguish import Open, distinguish
from sulq.audit.meaning import Door, Finding
from sulq.cli.audit import opendp as opendp_check
from sulq.cli.audit.laws import LawScope, Result, controls, costs, joined, samplers
from sulq.cli.show import console
from sulq.curator.curator import Curator
from sulq.curator.ledger.ledger import Ledger, verify
from sulq.curator.run import Release, Rows
from sulq.errors import SulqError
from sulq.kernel.mechanisms import MECHANISMS, release
from sulq.language.domain import Bool, Int
from sulq.language.kinds import Truths
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho, Unit
from sulq.language.question import Holistic, OpenSums, Question, Together
from sulq.language.rowfn import col, each, lit, lookup
from sulq.language.space import Box, Cube
from sulq.language.statistic import Aggregated, Occurring, ToSorted, ToUnique
from sulq.language.tally import Engine
from sulq.testing import exact, neighbours
from sulq.testing.exact import Late, silent
from sulq.testing.neighbours import Row
from sulq.testing.questions import Drawer
from sulq.testing.replay import Run, differences, record

ENGINES: Final = ("duckdb", "memory")
UNITS: Final = (
    Unit(),
    Unit("pid", 3),
    Unit(None, 1, "replace_one"),
    Unit("pid", 2, "replace_one", fold="spelling"),
    Unit(None, 1, "zero_out"),
    Unit("pid", 2, "zero_out"),
)
BUDGET: Final = EpsilonDelta(1000, 1e-6)
SPENDS: Final = (Epsilon(0.5), Rho(0.02), EpsilonDelta(0.5, 1e-6))
OPEN: Final = (EpsilonDelta(0.5, 1e-6),)  # groups found in the data have a delta
HOLISTIC: Final = (
    Holistic(ToUnique(("age",))),
    Holistic(ToSorted("score")),
    Holistic(Occurring(("city", "flag")), space=Cube()),
    Holistic(ToUnique(("city",)), space=Box(0, 12)),
    Holistic(Aggregated("median", ("score",), 4, 10, 21)),
)
QUESTIONS: Final = (240, 6_000)  # put to neighbours, and by the long audit
DATABASES: Final = (120, 480)  # attacked for one guess each: of so many at epsilon 1 that all are right is no luck
REPLACED: Final = Unit(neighbors="replace_one")
Program = Callable[[NamedAsks], object]
Attack = Callable[[Door, np.random.Generator, Truths], Finding]


def checked(*, deep: bool, case: int | None = None, opendp: bool = False) -> bool:
    """Run every check and print the table; whether all passed."""
    checks = dict(CHECKS)
    if opendp:
        opendp_check.load()  # or an error, before the minutes that the others take
        checks["OpenDP"] = opendp_check.compare
    table = Table("check", "", "what was found", "seconds")
    failed = 0
    case = secrets.randbelow(2**32) if case is None else case
    for name, check in checks.items():
        start = time.perf_counter()
        with console.status(f"{name} ..."):
            try:
                found = check(LawScope(deep, np.random.default_rng(case)))
            except SulqError as error:
                found = Result(passed=False, told=str(error))
        failed += not found.passed
        word = "[green]pass[/]" if found.passed else "[bold red]FAIL[/]"
        table.add_row(name, word, escape(found.told), f"{time.perf_counter() - start:.1f}")
    console.print(table)
    console.print(f"{len(checks) - failed} of {len(checks)} checks passed, on data made up from --case {case}")
    return not failed


def replay(scope: LawScope) -> Result:
    """The same programs on neighbouring data, with the noise held still, differ in nothing (record and replay)."""
    random, wanted, done, number = scope.random, scope.of(*QUESTIONS), 0, 0
    found: list[str] = []
    answered = set[str]()
    while done < wanted and not found:
        unit, kind = UNITS[number % len(UNITS)], ENGINES[number // len(UNITS) % len(ENGINES)]
        rows = neighbours.table(random, unit, int(random.integers(1, 8)))
        asked = _questions(Drawer(random))
        pairs = list(neighbours.pairs(random, unit, rows))
        second = pairs[int(random.integers(len(pairs)))].second
        programs = [_asking(question, random) for question in asked]
        found, run = _told_apart(rows, second, programs, unit, kind)
        told = zip(asked, run.outcomes, strict=True)
        answered |= {type(question).__name__ for question, outcome in told if outcome.startswith(JSON)}
        done, number = done + len(programs), number + 1
    rows = [neighbours.row(random, f"p{i}", special=0.0) for i in range(3)]
    count: list[Program] = [lambda asks: asks.count(spend=Epsilon(1))]
    noticed = [
        bool(_told_apart(rows, rows[1:], count, UNITS[0], "duckdb", noise=silent)[0]),
        bool(_told_apart(rows, rows[1:], count, UNITS[0], "duckdb", part=_trusting, curator=Late)[0]),
    ]
    kinds = ", ".join(sorted(answered))
    asked_of = f"{done} questions ({kinds}) on neighbours, {len(ENGINES)} engines"
    told_of = f"told apart by: {found[0]}" if found else asked_of
    return Result(not found and answered >= KINDS and all(noticed), f"{told_of}; {controls(noticed)}")


JSON: Final = ("[", "{")  # how an answer begins that an analyst sees, and no error does
KINDS: Final = {"Sums", "Together", "Choose", "Above", "OpenSums", "Holistic"}  # each must have been answered


def _questions(drawer: Drawer) -> list[Question]:
    """Ten questions, of every kind."""
    several: list[Question] = [*(drawer.question() for _ in range(3)), Together((drawer.sums(), drawer.sums()))]
    several += [drawer.choose(), drawer.choose(), drawer.above(), drawer.open_sums(), drawer.open_sums()]
    return [*several, HOLISTIC[int(drawer.rng.integers(len(HOLISTIC)))]]


def _asking(question: Question, random: np.random.Generator) -> Program:
    spends = OPEN if isinstance(question, OpenSums) else SPENDS
    spend = spends[int(random.integers(len(spends)))]
    return lambda asks: asks.ask(question, spend=spend)


def _trusting(engine: Engine, _: Ledger) -> Rows:
    """Runs whatever it is given, paid or not."""
    return Rows(engine, lambda _receipt, _plan, _event: True)


def _told_apart(
    first: Sequence[Row],
    second: Sequence[Row],
    programs: Sequence[Program],
    unit: Unit,
    kind: str,
    *,
    part: Callable[[Engine, Ledger], Rows] = lambda engine, ledger: Rows(engine, ledger.redeem),
    noise: Callable[[Release], Release] = lambda release: release,
    curator: type[Curator] = Curator,
) -> tuple[list[str], Run]:
    """What tells two data sets apart but noise, and the first run; a control brings its own part, or its own curator.

    Both are of one person space: the key that picks a heavy person's rows is the same (SR2).
    """
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="sulq-audit-") as folder:
        for rows in (first, second):
            db = connect(
                neighbours.arrow(rows),
                columns=dict(neighbours.COLUMNS),
                unit=unit,
                budget=BUDGET,
                engine=kind,
                ledger=Path(folder) / "people.ledger",
                synthetic=True,
            )
            run = record(
                db._engine,  # noqa: SLF001 - no door leads to the rows; that is the point
                programs,
                asks=NamedAsks,
                schema=neighbours.SCHEMA,
                unit=unit,
                budget=BUDGET,
                release=release,
                mechanisms=tuple(MECHANISMS),
                earlier=runs[0] if runs else None,
                rows=part,
                noise=noise,
                curator=curator,
            )
            db.close()
            runs.append(run)
    return differences(*runs), runs[0]


def black_box(scope: LawScope) -> Result:
    """Counts on neighbours through the public door show no more epsilon than was paid for; without noise they do."""
    trials, price = scope.of(12_000, 100_000), Epsilon(Fraction(1, 2))
    found = distinguish(_ones(3), _ones(4), lit(1), each=price, trials=trials)
    bare = distinguish(_ones(3, noisy=False), _ones(4, noisy=False), lit(1), each=price, trials=400)
    return Result(found.holds and not bare.holds, f"{found}; {controls([not bare.holds])}")


def _ones(count: int, *, noisy: bool = True) -> Open:
    """How to open a database of so many people, again and again; or the same without noise."""

    @contextlib.contextmanager
    def opened() -> Iterator[Door]:
        table = pa.table({"x": np.ones(count, dtype=np.int64)})
        with connect(table, columns={"x": Int(0, 1)}, budget=Epsilon(1000), synthetic=True) as db:
            yield db if noisy else exact(db)

    return opened


def _secrets(people: int, random: np.random.Generator) -> tuple[Database, Truths]:
    """People with a seat that everybody knows and a fair bit that nobody should, at epsilon 1 in all."""
    bits = random.random(people) < 0.5
    table = pa.table({"seat": np.arange(people), "secret": bits})
    columns = {"seat": Int(0, people - 1), "secret": Bool()}
    return connect(table, columns=columns, unit=REPLACED, budget=Epsilon(1), synthetic=True), bits


def _attacked(attack: Attack, random: np.random.Generator, people: int, times: int) -> Result:
    """An attack on budgeted databases, which must not pass the guarantee, and without noise, where it must succeed."""
    found: list[Finding] = []
    control: list[Finding] = []
    for _ in range(times):
        db, bits = _secrets(people, random)
        with db:
            control.append(attack(exact(db), random, bits))
            found.append(attack(db, random, bits))
    total, bare = (sum(several[1:], start=several[0]) for several in (found, control))
    return _judged(total, bare)


def _judged(found: Finding, bare: Finding) -> Result:
    """An attack that stays within the guarantee; `bare`, without noise, succeeds so that it would be refuted."""
    noticed = [bare.succeeded, not replace(bare, allowed=found.allowed).within]
    return Result(found.within and all(noticed), f"{found}; {controls(noticed)}")


def reconstruction(scope: LawScope) -> Result:
    """Random subset sums, solved by least squares and by a linear program (T61)."""
    results = []
    for method in METHODS:

        def attack(door: Door, random: np.random.Generator, bits: Truths, method: Method = method) -> Finding:
            return reconstruct(
                door,
                person=each("seat"),
                secret=col("secret"),
                truth=bits,
                spend=Epsilon(1),
                queries=3 * len(bits),
                random=random,
                method=method,
            )

        results.append(_attacked(attack, scope.random, scope.of(100, 200), scope.of(2, 5)))
    return joined(results)


def subtraction(scope: LawScope) -> Result:
    """Differencing and the tracker (T62)."""

    def by_difference(door: Door, _: np.random.Generator, bits: Truths) -> Finding:
        targets = [(col("seat") == 0, bool(bits[0]))]
        return differencing(door, targets=targets, secret=col("secret"), spend=Epsilon(1))

    def by_tracker(door: Door, _: np.random.Generator, bits: Truths) -> Finding:
        targets, half = [(col("seat") == 0, bool(bits[0]))], col("seat") < len(bits) // 2
        return tracker(door, targets=targets, secret=col("secret"), padding=half, spend=Epsilon(1))

    several = (by_difference, by_tracker)
    results = [_attacked(attack, scope.random, 20, scope.of(*DATABASES)) for attack in several]
    return joined(results)


def repetition(scope: LawScope) -> Result:
    """Averaging of repeats (T62)."""

    def attack(door: Door, _: np.random.Generator, bits: Truths) -> Finding:
        target, has = col("seat") == 0, bool(bits[0])
        return averaging(door, target=target, secret=col("secret"), has=has, spend=Epsilon(1), repeats=4)

    return _attacked(attack, scope.random, 20, scope.of(*DATABASES))


def tracing(scope: LawScope) -> Result:
    """Membership through many marginals, and canaries in one run (T63, T64)."""
    random, people, attributes, seats = scope.random, 160, 4_000, scope.of(400, 4_000)
    common = random.uniform(0.2, 0.8, attributes)
    profiles = (random.random((people, attributes)) < common).astype(np.int64)
    inside = random.random(people) < 0.5
    fn = lookup(each("profile"), profiles.tolist())

    def traced(door: Door) -> Finding:
        wanted = profiles.astype(np.float64)
        return membership(door, attributes=fn, candidates=wanted, inside=inside, frequencies=common, spend=Epsilon(1))

    hidden = random.random(seats) < 0.5

    def sung(door: Door) -> Finding:
        return canaries(door, person=col("seat"), inside=hidden, spend=Epsilon(1))

    results = []
    for attack, name, present in ((traced, "profile", inside), (sung, "seat", hidden)):
        table, columns = pa.table({name: np.flatnonzero(present)}), {name: Int(0, len(present) - 1)}
        with connect(table, columns=columns, budget=Epsilon(1), synthetic=True) as db:
            bare, found = attack(exact(db)), attack(db)
        results.append(_judged(found, bare))
    return joined(results)


def ledger(scope: LawScope) -> Result:
    """A ledger verifies after asks and a restart; with any entry changed, lost or repeated it does not."""
    asks = scope.of(20, 200)
    with tempfile.TemporaryDirectory(prefix="sulq-audit-") as folder:
        data = Path(folder) / "people.parquet"
        pq.write_table(pa.table({"x": [0, 1, 1, 0]}), data)
        path = Path(folder) / "people.ledger"
        for _ in range(2):
            with connect(data, columns={"x": Int(0, 1)}, budget=Epsilon(1000), synthetic=True) as db:
                for _ in range(asks // 2):
                    db.count(spend=Epsilon(1), fresh=True)
                spent = db.spent
        report = verify(path, mechanisms=tuple(MECHANISMS))
        whole = path.read_bytes()
        noticed = [_refuses(path, whole, change, seq) for change in DAMAGES for seq in (2, asks, report.entries)]
    sound = report.debits == asks and spent == Epsilon(asks)
    return Result(sound and all(noticed), f"{report.debits} debits sound; {controls(noticed)}")


# What may happen to an entry; each is of an entry that is there, so each must be refused.
DAMAGES: Final = (
    "UPDATE entries SET body = replace(body, ':', ' :') WHERE seq = ?",  # another text of the same meaning
    "UPDATE entries SET body = replace(body, '1', '0') WHERE seq = ?",  # another price
    "UPDATE entries SET hash = zeroblob(length(hash)) WHERE seq = ?",
    "DELETE FROM entries WHERE seq = ?",
)


def _refuses(path: Path, whole: bytes, change: str, seq: int) -> bool:
    """Whether a ledger of which one entry was changed is refused."""
    path.write_bytes(whole)
    with contextlib.closing(sqlite3.connect(path)) as damaged, damaged:
        if damaged.execute(change, (seq,)).rowcount != 1:
            return False  # nothing was changed: that would notice nothing
    try:
        verify(path, mechanisms=tuple(MECHANISMS))
    except SulqError:
        return True
    return False


CHECKS: Final[dict[str, Callable[..., Result]]] = {
    "samplers": samplers,
    "exact costs": costs,
    "record and replay": replay,
    "black box": black_box,
    "reconstruction": reconstruction,
    "differencing and tracker": subtraction,
    "averaging": repetition,
    "membership and canaries": tracing,
    "ledger": ledger,
}
