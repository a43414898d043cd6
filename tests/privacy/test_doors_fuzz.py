"""Generated arguments at every public call: what comes out is an answer or an error of ours, and refusals are free.

Python decides about one thing before we do: a call whose arguments do not fit the
signature (one too many, one missing, an unknown name) is a TypeError of Python's own,
with nothing of ours on the stack. Nothing else that is foreign may come
out (T30): a foreign exception tells where a computation broke, and so of rows.
"""

from __future__ import annotations

import datetime
import decimal
import inspect
import operator
import random
import reprlib
import traceback
import types
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import sulq
import sulq.testing
from sulq import Epsilon, EpsilonDelta, Queries, Rho, Unit, col, errors
from sulq.cli import app
from sulq.errors import CuratorError, SulqError
from sulq.language.rowfn import RowFn
from tests import counts
from tests.sql.queries import Grammar, opened, tables

PACKAGE = Path(sulq.__file__).parent
DEEP: list[object] = []
for _ in range(2000):
    DEEP = [DEEP]
LONG = "x" * 20_000
ODD: tuple[object, ...] = (
    None, True, False, 0, -1, 1, 3, 2**53 + 1, 2**63, 10**400, 0.0, -0.0, 0.5, float("nan"), float("inf"),
    -1e308, 5e-324,
    "", "x", "c", "nope", "id", "a\x00b", "\ud800", "'; --", LONG, b"x", bytearray(b"x"), 1j, ..., NotImplemented,
    [], [None], ["x"], ["x", 3], [["x"]], ["x", "x"], DEEP, (), ("x", "c"), {}, {"x": 1}, {1: "x"}, set(),
    frozenset(("x",)), range(3), np.int64(3), np.float64("nan"), np.float32(0.5), np.bool_(True), np.array([1.0, 2.0]),
    np.array([["x"]], dtype=object), np.datetime64("2020-01-01"), np.str_("x"), decimal.Decimal("1.5"),
    decimal.Decimal("NaN"),
    Fraction(1, 3), datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    datetime.timedelta(1), object(), int, len, types.SimpleNamespace(x=1), Path("nowhere.csv"), pa.table({"x": [1]}),
    Epsilon(0.01), Rho(1e-4), EpsilonDelta(0.01, 1e-9), Queries(1), Unit("id"), sulq.Int(0, 3), sulq.Text(),
    sulq.Category(["a"]),
    col("x"), col("nope"), col("c"), col("note"), col("x") > 1, sulq.lit(3), sulq.Sums((sulq.lit(1),)),
    sulq.ToUnique(("x",)),
    sulq.Linear(((1,),)), "SELECT COUNT(*) FROM data", "SELECT",
)  # fmt: skip
GOOD: dict[str, tuple[object, ...]] = {
    "value": ("x", col("x"), col("r")), "values": (["x", "r"],), "where": (None, col("x") > 1, col("c") == "a"),
    "by": (None, "c", ["c", "b"]), "spend": (Epsilon(1e-6), EpsilonDelta(1e-6, 1e-12)), "within": (None, 10),
    "beta": (0.05,),
    "at_most": (None, Epsilon(1e-6)), "fresh": (False,), "q": (0.5, [0.1, 0.9]), "bins": (3, None, [0, 5, 10]),
    "column": ("x",),
    "columns": (["x", "c"], "x"), "text": ("SELECT COUNT(*) FROM data", "SELECT c, AVG(x) FROM data GROUP BY c"),
    "queries": (["SELECT COUNT(*) FROM data"],), "question": (sulq.Sums((sulq.lit(1),)),), "names": ("x", ["x", "r"]),
    "estimator": ("mean",), "blocks": (3,), "low": (0,), "high": (9,), "salt": (0,), "known": ((),), "other": (None,),
    "name": ("x", "c"), "lo": (0,), "hi": (9,), "item": (col("x"),), "items": ([col("x"), col("r")],), "key": (None,),
    "epsilon": (0.5,), "delta": (1e-6,), "rho": (0.1,), "rows": (3,), "neighbors": ("add_remove",), "ddof": (1,),
    "condition": (col("x") > 1,), "fn": (col("x"),), "edges": ([0, 5, 10],), "labels": (["a", "b"],), "count": (3,),
    "attributes": (["c", "b"],), "marginals": ([["c"], ["b"]],), "db": (), "X": (), "y": (), "oracle": (),
}  # fmt: skip


def table() -> pa.Table:
    """Three people."""
    return pa.table({
        "id": [1, 1, 2, 3], "x": [1, 2, 3, None], "r": [0.5, 1.5, None, 2.5], "c": ["a", "b", "a", "zz"],
        "b": [True, None, False, True], "note": ["n", None, "m", "n"], "d": [datetime.date(2020, 1, 2)] * 4,
        "at": [datetime.datetime(2020, 1, 2, 3)] * 4,  # noqa: DTZ001 - moments here are in UTC, without a zone
    })  # fmt: skip


COLUMNS = {
    "x": sulq.Int(0, 9), "r": sulq.Real(0, 4), "c": sulq.Category(["a", "b"]), "b": sulq.Bool(), "note": sulq.Text(),
    "d": sulq.Date("2020-01-01", "2020-12-31"), "at": sulq.Timestamp("2020-01-01", "2020-12-31"),
}  # fmt: skip


@pytest.fixture(scope="module")
def db() -> Iterator[sulq.Database]:
    """A database of them."""
    with sulq.connect(
        table(), columns=COLUMNS, unit=Unit("id", rows=2), budget=EpsilonDelta(50, 1e-3), synthetic=True
    ) as opened:
        yield opened


def signature_misuse(error: BaseException) -> bool:
    """Whether Python refused the call, for its arguments' number or names, before any code of ours ran."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if PACKAGE in Path(frame.filename).parents]
    return isinstance(error, TypeError) and "argument" in str(error) and not ours


def knock(call: Callable[[], object], db: sulq.Database | None = None) -> str | None:
    """What is wrong with what a call ends in: a foreign exception, or a refusal that cost something."""
    before = None if db is None else db.spent
    try:
        call()
    except CuratorError as error:
        return f"{error.code}: {error.message}"
    except SulqError as error:
        # A count that set the price is a debit of its own, and says so (SR7).
        if db is not None and db.spent != before and error.code != "too-costly":
            return f"{error.code} cost {db.spent}"
    except Exception as error:  # noqa: BLE001 - the whole point
        if not signature_misuse(error):
            place = inspect.trace()[-1]
            return f"{type(error).__name__}: {error} at {place.filename.rpartition('sulq/')[2]}:{place.lineno}"
    return None


def argument(rng: random.Random, name: str) -> object:
    """A value for a parameter: mostly one that fits."""
    return rng.choice(GOOD[name]) if GOOD.get(name) and rng.random() < 0.7 else rng.choice(ODD)


def arguments(rng: random.Random, call: object) -> tuple[list[object], dict[str, object]]:
    """Arguments that fit the signature, mostly; some are left out."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return [rng.choice(ODD)], {}
    given, named = [], {}
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            given += [rng.choice(ODD) for _ in range(rng.choice((0, 1, 2)))]
        elif parameter.kind is parameter.VAR_KEYWORD or (
            parameter.default is not parameter.empty and rng.random() < 0.5
        ):
            continue
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) and not named:
            given.append(argument(rng, parameter.name))
        else:
            named[parameter.name] = argument(rng, parameter.name)
    return given, named


def fuzz(
    rng: random.Random, doors: dict[str, Callable[..., object]], planned: int, db: sulq.Database | None
) -> list[str]:
    """Faults found by so many calls."""
    found = []
    names = sorted(doors)
    for number in range(planned):
        name = names[number % len(names)]
        given, named = arguments(rng, doors[name])
        fault = knock(lambda name=name, given=given, named=named: doors[name](*given, **named), db)
        if fault is not None:
            found.append(f"{name}(*{reprlib.repr(given)}, **{reprlib.repr(named)}): {fault}")
    return found


# The owner's own: they take callables that may raise what they like, or change what the others are asked of.
LEFT_OUT = {"close", "prepare", "connect", "errors", "sensitivity_from_sampler", "asking", "Certificate"}


def of_module() -> dict[str, Callable[..., object]]:
    """The callables of `sulq` itself."""
    return {
        name: getattr(sulq, name) for name in sulq.__all__ if callable(getattr(sulq, name)) and name not in LEFT_OUT
    }


def of_database(db: sulq.Database) -> dict[str, Callable[..., object]]:
    """The methods of a database."""
    names = [name for name in dir(type(db)) if not name.startswith("_") and name not in LEFT_OUT]
    found = {name: getattr(db, name) for name in names if callable(getattr(type(db), name, None))}
    return found | {"[]": lambda names: db[names]}


def test_no_constructor_ends_in_a_foreign_exception() -> None:
    """Domains, losses, units, row functions, questions. Control: below."""
    rng = counts.generator("doors of the module")
    planned = counts.count("calls of the module's names", short=4_000, long=400_000)
    assert fuzz(rng, of_module(), planned, None) == []


def test_no_method_of_a_database_ends_in_a_foreign_exception(db: sulq.Database) -> None:
    """Named asks, SQL, plans, columns; and what is refused costs nothing."""
    rng = counts.generator("doors of the database")
    planned = counts.count("calls of a database's methods", short=500, long=100_000)
    assert fuzz(rng, of_database(db), planned, db) == []


BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, divmod,
    operator.matmul, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor, operator.eq,
    operator.ne,
    operator.lt, operator.le, operator.gt, operator.ge, operator.contains, operator.getitem,
]  # fmt: skip
UNARY = [
    operator.neg,
    operator.pos,
    operator.invert,
    abs,
    bool,
    int,
    float,
    complex,
    len,
    iter,
    list,
    round,
    hash,
    repr,
]
METHODS = ["clip", "isin", "between", "is_missing", "fill"]


def test_no_operator_of_a_column_ends_in_a_foreign_exception(db: sulq.Database) -> None:
    """With everything on either side; what was made is then asked about."""
    rng = counts.generator("operators")
    foreign = []
    for act in (*BINARY, *UNARY):
        for odd in ODD if act in BINARY else (None,):
            for sides in [(col("x"), odd), (odd, col("x"))] if act in BINARY else [(col("x"),)]:
                fault = knock(lambda act=act, sides=sides: act(*sides))
                if fault is not None and not _others(act, sides):
                    foreign.append(f"{act.__name__}{reprlib.repr(sides)}: {fault}")
    for _ in range(counts.count("expressions of odd operands", short=250, long=20_000)):
        made = col(rng.choice(("x", "r", "c", "b", "note", "d", "at", "nope")))
        for _ in range(rng.randint(1, 3)):
            made = _grown(rng, made)
        fault = knock(lambda made=made: db.sum(made, spend=Epsilon(1e-6)), db) or knock(
            lambda made=made: db.count(made, by=[made], spend=Epsilon(1e-6)), db
        )
        if fault is not None:
            foreign.append(fault)
    assert foreign == []


def _others(act: object, sides: tuple[object, ...]) -> bool:
    """Whether the operator is the other operand's: a tuple's `in`, a list's place."""
    return act in (operator.contains, operator.getitem) and not isinstance(sides[0], type(col("x")))


def _grown(rng: random.Random, made: RowFn) -> RowFn:
    other = rng.choice((*ODD, col("x"), col("r")))
    try:
        if rng.random() < 0.3:
            method = getattr(made, rng.choice(METHODS))
            return method(*[rng.choice(ODD) for _ in inspect.signature(method).parameters])
        found = rng.choice(BINARY[:-2])(*rng.sample((made, other), 2))
        return found if isinstance(found, RowFn) else made
    except Exception as error:
        if isinstance(error, SulqError) or signature_misuse(error):
            return made
        raise


def nested() -> object:
    """A list in a list, and so on, deeper than Python prints."""
    found: list[object] = []
    for _ in range(100_000):
        found = [found]
    return found


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: db.plan(["SELECT COUNT(*) FROM data"], spend=Epsilon(1e-6), known=[["x"]]),
        lambda db: db.variance("x", ddof=np.array([0, 1]), spend=Epsilon(1e-6)),
        lambda _: sulq.connect(pa.table({"x": [1]}), columns={"x": (0, 1)}, budget=Epsilon(1), engine=nested()),
    ],
)
def test_what_the_long_runs_found_is_refused_with_a_code(db: sulq.Database, ask: Callable[..., object]) -> None:
    """A list for an answer known already, an array for a whole number, an engine whose name cannot be printed."""
    with pytest.raises(SulqError):
        ask(db)


def test_no_sql_text_ends_in_a_foreign_exception(db: sulq.Database) -> None:
    """Sentences of a grammar, with joins, and our own, all of them mutated; asked and explained."""
    rng = counts.generator("mutated SQL")
    foreign = []
    with opened(tables(rng)) as linked:
        for number in range(counts.count("mutated SQL texts", short=60, long=40_000)):
            asked = linked if number % 2 else db
            text = mutated(rng, Grammar(rng).asked().text if number % 2 else rng.choice(OWN))
            for ask in (asked.sql, asked.explain):
                spend = rng.choice((Epsilon(1e-6), EpsilonDelta(1e-6, 1e-12)))
                fault = knock(lambda text=text, ask=ask, spend=spend: ask(text, spend=spend), asked)
                if fault is not None:
                    foreign.append(f"{text}: {fault}")
    assert foreign == []


OWN = (
    "EXPLAIN SELECT note, COUNT(DISTINCT id) FROM data GROUP BY note",
    "SELECT note, COUNT(DISTINCT id) AS n, SUM(x) FROM data GROUP BY note ORDER BY n DESC LIMIT 3",
    "SELECT c, b, AVG(x), MEDIAN(r) FROM data WHERE at > '2020-01-02' GROUP BY ROLLUP (c, b) HAVING COUNT(*) > 1",
    "SELECT date_trunc('day', at), COUNT(*) FROM data WHERE d BETWEEN '2020-01-01' AND '2020-02-01' GROUP BY 1",
    "SELECT AVG(n) FROM (SELECT id, COUNT(*) AS n FROM data GROUP BY id) AS t WHERE n % 2 = 1",
    "WITH t AS (SELECT DISTINCT c, x FROM data) SELECT COUNT(*) FROM t WHERE c IN ('a', 'b') OR x IS NULL",
    "SELECT CASE WHEN x > 3 THEN 'a' ELSE c END, STDDEV(r), CORR(x, r) FROM data GROUP BY 1",
    "SELECT COUNT(*) FROM data WHERE note LIKE '%n_' AND UPPER(c) || note <> 'x' AND CAST(x AS TEXT) = '1'",
)
WORDS = (
    "NULL", "0", "-1", "1e400", "99999999999999999999", "''", "'x'", "x", "c", "note", "id", "data", "*", "(", ")",
    ",", "/", "%",
    "AND", "NOT", "IS", "IN", "BETWEEN", "LIKE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "DISTINCT", "OVER ()",
    "FILTER",
    "COUNT(*)", "SUM", "AVG(x)", "MEDIAN(note)", "INTERVAL '1' MONTH", "DATE '2020-02-30'", "TIMESTAMP '9999-12-31'",
    "CAST",
    "EXTRACT(dow FROM d)", "date_trunc('x', at)", "POWER(x, 999)", "LN(x)", "SUBSTRING(note, -1, 1e9)", "::int",
    "\x00", "--", ";",
    "ROLLUP", "UNION", "JOIN data USING (id)", "LATERAL", "$1", "?", "\u00e9", '"x"', "[1]", "ARRAY[1]", "{",
    "EXISTS (SELECT 1)",
)  # fmt: skip


def mutated(rng: random.Random, text: str) -> str:
    """A text with some words left out, doubled, moved or put in."""
    words = text.split()
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        place = rng.randrange(len(words) + 1)
        act = rng.randrange(4)
        if act == 0 and words:
            del words[min(place, len(words) - 1)]
        elif act == 1:
            words.insert(place, rng.choice(WORDS))
        elif act == 2 and words:
            words[min(place, len(words) - 1)] = rng.choice(WORDS)
        elif words:
            words.insert(place, rng.choice(words))
    return " ".join(words)


NO_FILES = [odd for odd in ODD if not isinstance(odd, Path) and (not isinstance(odd, str) or not odd.isprintable())]


def test_connect_ends_in_no_foreign_exception() -> None:
    """Whatever an owner declares is opened or refused."""
    rng = counts.generator("declarations")
    good: dict[str, tuple[object, ...]] = {
        "table": ("data", None), "columns": (COLUMNS, {"x": (0, 9), "c": ["a"]}), "unit": (Unit(), Unit("id", rows=2)),
        "budget": (Epsilon(1), EpsilonDelta(1, 1e-6)), "size": (None, 4), "keys": (None,), "public": (None, ()),
        "ledger": (None,), "anchor": (None,), "synthetic": (False, True), "engine": ("duckdb", "memory"),
        "prepared": (None, False), "renew": (False,), "basic_share": (None, 0.2), "key_share": (None, 0.2),
    }  # fmt: skip
    foreign = []
    for _ in range(counts.count("odd declarations", short=300, long=20_000)):
        source = table() if rng.random() < 0.8 else rng.choice([odd for odd in ODD if not isinstance(odd, (str, Path))])
        named = {"columns": COLUMNS, "budget": Epsilon(1)}
        for name in rng.sample(sorted(good), rng.randint(0, 4)):
            fits = rng.random() < 0.5 or (name in ("ledger", "anchor", "prepared") and rng.random() < 0.8)
            named[name] = rng.choice(good[name]) if fits else rng.choice(NO_FILES)
        if rng.random() < 0.3:
            named["columns"] = {rng.choice(("x", "c", "nope", "", "id")): rng.choice(ODD)}

        fault = knock(lambda source=source, named=named: sulq.connect(source, **named).close())
        if fault is not None:
            foreign.append(f"{reprlib.repr(source)}, {reprlib.repr(named)}: {fault}")
    assert foreign == []


WORDED = (
    "", "-", "--", "x", "nope", "data.csv", "nowhere.csv", ".", "/", "data.ledger", "\x00", "\ud800", "é", LONG, "0",
    "-1", "1e-6",
    "1e999", "nan", "inf", "--epsilon", "--rho", "--delta", "--within", "--format", "json", "csv", "--fresh",
    "--config", "--help",
    "--role", "--columns", "SELECT COUNT(*) FROM data", "SELECT", "show", "verify", "check", "reconcile", "add",
    "list", "revoke",
    "pca", "kmeans", "contingency", "mwem", "http://127.0.0.1:1/x", "postgresql:///nowhere", "--token", "[]",
    '{"a": 1}',
)  # fmt: skip
COMMANDS = ("query", "explain", "budget", "prepare", "ledger", "analyst", "learn", "release", "nope", "--version")
CONFIG = """
[dataset]
data = "data.csv"
unit = { column = "id", rows = 2 }
budget = { epsilon = 2.0, delta = 1e-6 }
[dataset.columns]
x = { int = [0, 9] }
c = { category = ["a", "b"] }
"""


def test_no_command_ends_in_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd words after every command, and odd declarations beside the data; what is refused costs nothing."""
    rng = counts.generator("commands")
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("id,x,c\n1,2,a\n2,3,b\n", encoding="utf-8")
    foreign = []
    for number in range(counts.count("odd command lines", short=150, long=5_000)):
        config = CONFIG
        if number % 3 == 0:
            lines = CONFIG.split("\n")
            place = rng.randrange(len(lines))
            lines[place] = rng.choice(
                ("", "x = 1", lines[place] + "]", lines[place].replace("2", '"a"'), "[dataset.x]", "\x01")
            )
            config = "\n".join(lines)
        Path("data.sulq.toml").write_text(config, encoding="utf-8")
        words = [rng.choice(COMMANDS)]
        if rng.random() < 0.6:
            words += ["data.csv"] if words[0] != "ledger" else [rng.choice(("show", "verify", "check")), "data.ledger"]
        words += [rng.choice(WORDED) for _ in range(rng.randint(0, 4))]
        found = CliRunner().invoke(app, words)
        if found.exception is not None and not isinstance(found.exception, (SulqError, SystemExit)):
            place = traceback.extract_tb(found.exc_info[2])[-1]
            foreign.append(f"{reprlib.repr(words)}: {found.exception!r:.200} at {place.filename}:{place.lineno}")
    assert foreign == []


ONCE: dict[str, Callable[[sulq.Database], object]] = {
    "people in open groups": lambda db: db.explain(OWN[0].removeprefix("EXPLAIN "), spend=EpsilonDelta(0.1, 1e-7)),
    "the same in SQL": lambda db: db.sql(OWN[0], spend=EpsilonDelta(0.1, 1e-7)),
    "a remainder": lambda db: db.count(col("x") % 2 == 1, spend=Epsilon(1e-6)),
    "an operator of no meaning": lambda _: col("x") @ 2,
    "a unit's column that is an array": lambda _: sulq.Unit(np.array([1.0, 2.0])),  # type: ignore[arg-type]
    "a unit's rows that are an array": lambda _: sulq.Unit(None, np.array([1, 2])),  # type: ignore[arg-type]
    "a score of one row": lambda _: sulq.Linear((1,)),  # type: ignore[arg-type]
    "a width without end": lambda db: db.explain("SELECT COUNT(*) FROM data", within=10**400),
    "a probability that is none": lambda db: db.explain("SELECT AVG(x) FROM data", beta="x"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", ONCE)
def test_what_once_ended_in_a_foreign_exception_does_not_T30(what: str, db: sulq.Database) -> None:
    """Found by these suites, or before them."""
    assert knock(lambda: ONCE[what](db), db) is None


def test_a_remainder_is_that_of_sql(db: sulq.Database) -> None:
    """`%` by a constant, and the operators beside it, mean in Python what they mean in SQL."""
    exact = sulq.testing.exact(db)
    made = {
        "x % 2": col("x") % 2,
        "FLOOR(x / 2)": col("x") // 2,
        "POWER(x, 2)": col("x") ** 2,
        "ABS(x - 3)": abs(col("x") - 3),
    }
    for text, fn in made.items():
        found = exact.sql(f"SELECT SUM({text}) AS s FROM data", spend=Epsilon(1)).to_arrow()["s"][0].as_py()
        assert exact.sum(fn, spend=Epsilon(1)).value == found, text


class Planted:
    """Control: doors that break in the ways the suite is there to notice."""

    spent = 0

    def count(self, value: object) -> object:
        """Raises what NumPy raises."""
        return np.concatenate([]) if value is None else value

    def sum(self, value: object) -> object:
        """Raises Python's own error from inside."""
        return value + 1  # type: ignore[operator]

    def mean(self, value: object) -> object:
        """Charges, and then refuses."""
        self.spent += 1
        raise errors.QuestionError("bad-question", f"{type(value)}")


def test_planted_faults_are_noticed() -> None:
    """Control: each of the three, and not the call that does not fit its signature."""
    stub = Planted()
    found = fuzz(random.Random(1), {"count": stub.count, "sum": stub.sum, "mean": stub.mean}, 600, stub)  # type: ignore[arg-type]
    assert {fault.partition("(")[0] for fault in found} == {"count", "sum", "mean"}
    assert any("ValueError" in fault for fault in found)
    assert knock(stub.count) is None  # type: ignore[call-arg]
    assert knock(lambda: stub.count(1, nothing=2)) is None  # type: ignore[call-arg]
