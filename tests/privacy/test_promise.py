"""What is promised and to whom: on every answer, refused where it cannot be kept, and with no way around the noise."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import (
    Bool,
    Category,
    Date,
    Epsilon,
    EpsilonDelta,
    Int,
    Real,
    Rho,
    SubLinear,
    Sums,
    Text,
    Unit,
    bins,
    col,
    each,
)
from sulq.answers import wire
from sulq.answers.answer import Answer
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, QuestionError, SetupError, SulqError
from sulq.kernel.private import Private
from sulq.language.rowfn import Lit
from sulq.testing import exact
from tests.privacy.cases import ENGINES, opened

COLUMNS = {
    "age": Int(0, 100), "income": Real(0, 1000), "flag": Bool(), "city": Category(("Haifa", "Lod")),
    "day": Date("2020-01-01", "2020-12-31"), "name": Text(),
}  # fmt: skip
TABLE = pa.table(
    {"age": [11, 22], "income": [1.5, 2.5], "flag": [True, False], "city": ["Lod", "Haifa"],
     "day": ["2020-02-02", "2020-03-03"], "name": ["Ann", "Bob"], "pid": ["a", "b"], "secret": [5, 6]}
)  # fmt: skip


QUESTIONS = {
    "age": [lambda db: db.sum("age", spend=Epsilon(1)), lambda db: db.count(col("age") > 3, spend=Epsilon(1))],
    "income": [lambda db: db.mean("income", spend=Epsilon(1)), lambda db: db.std(col("income") + 1, spend=Epsilon(1))],
    "flag": [
        lambda db: db.count(col("flag"), spend=Epsilon(1)),
        lambda db: db.count(by=each("flag"), spend=Epsilon(1)),
    ],
    "city": [
        lambda db: db.count(by="city", spend=Epsilon(1)),
        lambda db: db.count(col("city") == "Lod", spend=Epsilon(1)),
    ],
    "day": [lambda db: db.count(by=bins("day", ["2020-01-01", "2020-12-31"]), spend=Epsilon(1))],
    "name": [lambda db: db.count(col("name") == "Ann", spend=Epsilon(1))],
}


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("name", COLUMNS)
def test_without_its_declaration_a_column_cannot_be_asked_about_T12(kind: str, name: str) -> None:
    """With each declaration deleted in turn, what needs it is refused before any debit, naming the column (T12).

    Bar: 100 % refused. Control: with the declaration it is answered.
    """
    with opened(TABLE, columns=COLUMNS, engine=kind, budget=Epsilon(99)) as db:
        for ask in QUESTIONS[name]:
            assert ask(db).receipt
    rest = {other: column for other, column in COLUMNS.items() if other != name}
    with opened(TABLE, columns=rest, engine=kind, budget=Epsilon(99)) as db:
        for ask in QUESTIONS[name]:
            with pytest.raises(QuestionError) as refused:
                ask(db)
            assert refused.value.code == "unknown-column"
            assert name in refused.value.message
        assert db.spent.amount == 0


def test_missing_declarations_of_the_whole_are_refused_T12() -> None:
    """No columns, budget or bounds: errors of set-up, never a guess; an unnamed spend is an error of the ask (T12)."""
    for broken in (
        {"columns": None}, {"columns": {}}, {"budget": None}, {"columns": {"age": int}}, {"columns": {"age": None}},
        {"columns": {"age": Real}}, {"columns": {"age": (0,)}}, {"columns": {"city": []}}, {"unit": "pid"},
    ):  # fmt: skip
        with pytest.raises(SetupError) as refused:
            opened(TABLE, **({"columns": COLUMNS} | broken))
        assert refused.value.code == "bad-declaration"
    with opened(TABLE, columns=COLUMNS) as db:
        for ask in (db.count, lambda: db.sum("age"), lambda: db.mean("age"), lambda: db.ask(Sums((Lit(1),)))):
            with pytest.raises(QuestionError) as refused:
                ask()
            assert refused.value.code == "spend-missing"
        for value in (1 / col("age"), col("age") / (col("income") - 5), col("name")):
            with pytest.raises(QuestionError) as refused:
                db.sum(value, spend=Epsilon(1))
            assert refused.value.code in {"unbounded", "wrong-kind"}
        assert db.spent.amount == 0


BAD_SPENDS = [
    float("nan"),
    -1,
    -0.5,
    0,
    0.0,
    float("inf"),
    -float("inf"),
    1e-400,
    1e-310,
    True,
    "1",
    "١",
    None,
    [1],
    1e999,
    1e9,
]


@pytest.mark.parametrize("number", BAD_SPENDS, ids=repr)
@pytest.mark.parametrize("loss", [Epsilon, Rho, lambda x: EpsilonDelta(x, 1e-6), lambda x: EpsilonDelta(1, x)])
def test_a_nonsense_loss_is_refused_before_anything_happens_T51(number: object, loss: object) -> None:
    """NaN, negative, zero, infinite, vanishing, huge, truth and text as a loss: `bad-loss`, nothing spent (T51).

    Control: an ordinary loss is taken.
    """
    with opened(TABLE, columns=COLUMNS, budget=EpsilonDelta(5, 1e-3)) as db:
        with pytest.raises(SulqError) as refused:
            db.count(spend=loss(number))
        assert refused.value.code == "bad-loss"
        assert db.spent.amount == 0
        assert db.count(spend=Epsilon(0.5)).spent == Epsilon(0.5)


def test_losses_from_the_wire_are_read_strictly_T51() -> None:
    """NaN, duplicate keys, and numbers out of range in JSON are refused as text (T51)."""
    good = wire.encode(Epsilon(0.5))
    assert wire.decode(good) == Epsilon(0.5)
    for text in (
        *(good.replace("0.5", number) for number in ("NaN", "1e999", "-Infinity", "true", '"1"', "0x1")),
        '{"kind":"Epsilon","epsilon":1,"epsilon":2}', '{"kind":"Epsilon"}', "nonsense",
    ):  # fmt: skip
        with pytest.raises(SulqError) as refused:
            wire.decode(text)
        assert refused.value.code in {"wire-format", "bad-loss"}


@pytest.mark.parametrize(
    ("budget", "spend"),
    [(Epsilon(2), Epsilon(0.5)), (Rho(2), Rho(0.5)), (EpsilonDelta(2, 1e-6), Rho(0.01)), (SubLinear(1, 1e-6, 9), None)],
)
def test_every_answer_says_whom_it_protects_and_what_it_cost_T93(budget: object, spend: object) -> None:
    """Unit, relation, loss, guarantee, what is left and the total to date are on each answer and in its text (T93)."""
    unit = Unit("pid", rows=2, neighbors="replace_one")
    with opened(TABLE, columns=COLUMNS, budget=budget, unit=unit) as db:
        for ask in (db.count, lambda spend: db.mean("age", spend=spend)):
            answer = ask(spend=spend)
            assert answer.unit == unit
            assert answer.unit.neighbors in repr(answer)
            assert "pid" in repr(answer)
            assert str(answer.spent) in repr(answer)
            assert str(answer.remaining) in repr(answer)
            assert answer.remaining == db.remaining
            assert answer.total == db.spent
            assert answer.guarantee in {"dp", "posterior"}
            assert answer.unit.neighbors in answer._repr_html_()
            assert wire.decode(wire.encode(answer)).total == answer.total
        if isinstance(budget, SubLinear):
            assert "posterior" in repr(answer)
        assert "forgotten at exit" in repr(answer)


def test_a_delta_that_is_large_for_the_declared_size_is_said_T93() -> None:
    """A budget whose delta is at least one in the declared number of people carries a warning on every answer (T93)."""
    with opened(TABLE, columns=COLUMNS, budget=EpsilonDelta(1, 1e-3), size=2000) as db:
        assert "delta" in " ".join(db.count(spend=Epsilon(0.1)).notes)
    with opened(TABLE, columns=COLUMNS, budget=EpsilonDelta(1, 1e-6), size=2000) as db:
        assert "delta" not in " ".join(db.count(spend=Epsilon(0.1)).notes)


def test_exact_answers_need_data_declared_synthetic_for_ever_T94_SR9(tmp_path: Path) -> None:
    """exact() is refused on private data and works on synthetic data; the ledger's first entry decides (T94, SR9)."""
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path)
    with sulq.connect(path, columns=COLUMNS, budget=Epsilon(1)) as db:
        with pytest.raises(AccessDenied) as refused:
            exact(db)
        assert refused.value.code == "not-synthetic"
    with pytest.raises(SetupError) as changed:
        sulq.connect(path, columns=COLUMNS, budget=Epsilon(1), synthetic=True)
    assert changed.value.code == "synthetic-mismatch"
    made = tmp_path / "made.ledger"
    with pytest.raises(SetupError) as covered:  # not under another ledger either
        sulq.connect(path, columns=COLUMNS, budget=Epsilon(1), synthetic=True, ledger=made)
    assert covered.value.code == "covered-source"
    path = tmp_path / "made" / "people.parquet"
    path.parent.mkdir()
    pq.write_table(TABLE, path, compression="none")  # other bytes: a copy would be covered from above (T98)
    made = path.with_name("made.ledger")
    with sulq.connect(path, columns=COLUMNS, budget=Epsilon(1), synthetic=True, ledger=made) as db:
        assert exact(db).count().value == 2
        assert exact(db).sum("age").value == 33
        assert db.spent.amount == 0
        assert "synthetic" in repr(db)
    with pytest.raises(SetupError):
        sulq.connect(path, columns=COLUMNS, budget=Epsilon(1), ledger=made)
    with pytest.raises(AccessDenied):
        exact(NamedAsks(None))


def test_no_setting_of_the_environment_turns_the_noise_off_T94(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every likely switch set, a private database still refuses exact answers and still draws noise (T94)."""
    for name in (
        "SULQ_TEST",
        "SULQ_DEBUG",
        "SULQ_EXACT",
        "SULQ_SYNTHETIC",
        "SULQ_NO_NOISE",
        "SULQ_SEED",
        "DEBUG",
        "CI",
    ):
        monkeypatch.setenv(name, "1")
    with opened(TABLE, columns=COLUMNS) as db:
        with pytest.raises(AccessDenied):
            exact(db)
        assert len({db.count(spend=Epsilon(0.1), fresh=True).value for _ in range(20)}) > 1


CANARIES = ("CANARY", "987654")


@pytest.mark.parametrize("kind", ENGINES)
def test_nothing_public_on_a_database_returns_a_row_S0_1(kind: str) -> None:
    """Every public attribute and method, called or read, gives answers, facts or refusals; none holds a cell (S0.1).

    Control: the engine's private attributes do hold the rows.
    """
    table = pa.table({"age": [987654, 987654], "name": ["CANARY", "CANARY"]})
    arguments = {
        "ask": (Sums((Lit(1),)),), "foresee": (Sums((Lit(1),)),), "sum": ("age",), "mean": ("age",), "std": ("age",),
        "variance": ("age",), "covariance": (["age"],), "histogram": ("age", 3), "sql": ("SELECT 1",),

    }  # fmt: skip
    with opened(table, columns={"age": Int(0, 100), "name": Text()}, engine=kind) as db:
        seen = []
        for name in dir(db):
            if name.startswith("_") or name in ("close", "asking"):
                continue
            if name == "graph":
                continue  # refused as not in this version
            thing = getattr(db, name)
            if callable(thing):
                wanted = inspect.signature(thing).parameters
                named = {"spend": Epsilon(1)} if "spend" in wanted else {}
                try:
                    thing = thing(*arguments.get(name, ()), **named)
                except SulqError as error:
                    thing = error
                except TypeError:
                    thing = "needs other arguments"
            seen.append((name, thing))
        seen.append(("handle", db[["age", "name"]]))
        seen.append(("handle's oracle", db["age"].oracle.facts))
        for name, thing in seen:
            shown = f"{thing!r} {thing}"
            if isinstance(thing, Answer):
                shown += f"{thing.value} {thing.to_dict()}"
            assert not any(canary in shown for canary in CANARIES), name
            assert not isinstance(thing, (Private, pa.Table, np.ndarray)), name
        assert {name for name, _ in seen} >= {"ask", "count", "facts", "foresee", "spent", "remaining", "transcript"}
        assert not any(canary in repr(db) for canary in CANARIES)


def test_a_database_and_an_exact_value_cannot_be_copied_or_pickled_S0_1() -> None:
    """Pickling or copying a database, its curator or a private value is refused (S0.1, SR21)."""
    with opened(TABLE, columns=COLUMNS) as db:
        for thing in (db, Private(np.arange(3))):
            for move in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(AccessDenied) as refused:
                    move(thing)
                assert refused.value.code == "private-value"
        for thing in (db._oracle, db._oracle.curator, db._oracle.curator._rows, db["age"], db._ledger):
            with pytest.raises((AccessDenied, TypeError, AttributeError)):
                pickle.dumps(thing)


def test_an_undeclared_category_is_an_error_as_a_literal_and_missing_as_a_cell_SR21() -> None:
    """A question may not name what was not declared; a cell that was not declared is silently missing (SR21)."""
    table = pa.table({"city": ["Akko", "Lod", "Lod"]})
    with opened(table, columns={"city": ["Haifa", "Lod"]}, synthetic=True, budget=Epsilon(9)) as db:
        for ask in (
            lambda: db.count(col("city") == "Akko", spend=Epsilon(1)),
            lambda: db.count(col("city").isin(["Lod", "Akko"]), spend=Epsilon(1)),
        ):
            with pytest.raises(QuestionError) as refused:
                ask()
            assert refused.value.code == "unknown-category"
        assert db.spent.amount == 0
        assert exact(db).count(by="city").value == {"Haifa": 0, "Lod": 2, None: 1}
        assert exact(db).count(col("city").is_missing()).value == 1


def test_a_ledger_of_a_later_format_is_not_opened_T91(tmp_path: Path) -> None:
    """A ledger whose format this version does not know is refused, and nothing is spent (T91)."""
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path)
    sulq.connect(path, columns=COLUMNS, budget=Epsilon(1)).close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sulq.kernel.ledger.entries.FORMAT", 1)
        with pytest.raises(SetupError) as refused:
            sulq.connect(path, columns=COLUMNS, budget=Epsilon(1))
    assert refused.value.code == "ledger-format"
    with sulq.connect(path, columns=COLUMNS, budget=Epsilon(1)) as db:
        assert db.spent.amount == Fraction(0)


def test_a_damaged_ledger_is_not_opened_T47(tmp_path: Path) -> None:
    """One flipped bit in the entries and `connect` refuses the file (T47); the ledger's own tests flip every bit."""
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path)
    with sulq.connect(path, columns=COLUMNS, budget=Epsilon(1)) as db:
        db.count(spend=Epsilon(0.5))
    ledger = tmp_path / "people.ledger"
    content = bytearray(ledger.read_bytes())
    place = content.index(b'"kind":"debit"')
    content[place + 9] ^= 1
    os.truncate(ledger, 0)
    ledger.write_bytes(content)
    with pytest.raises(SetupError) as refused:
        sulq.connect(path, columns=COLUMNS, budget=Epsilon(1))
    assert refused.value.code == "ledger-damaged"


def test_the_public_names_are_the_whole_door_S0_1() -> None:
    """A database is made by `connect` alone; the package root exports no engine, mechanism or curator (S0.1)."""
    assert not {"Database", "Curator", "Rows", "Ledger", "Private", "open_engine"} & set(sulq.__all__)
    assert issubclass(Database, NamedAsks)
