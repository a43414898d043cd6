"""Randomness: no seed anywhere, nothing shared over a fork, nothing released without entropy."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.main import get_command

import sulq
from sulq import Epsilon, EpsilonDelta, Int, Rho, SubLinear, Sums
from sulq.api.database import Database
from sulq.cli import app
from sulq.cli.settings import SETTINGS
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.kernel import entropy
from sulq.language.rowfn import Bins, Lit
from tests import counts
from tests.privacy.cases import ENGINES, opened

TABLE = pa.table({"x": [1, 2, 3]})
COLUMNS = {"x": Int(0, 9)}
SEEDS = ("seed", "random_state", "rng", "generator", "deterministic", "noise_off", "no_noise", "debug")


def signatures() -> list[tuple[str, list[str]]]:
    """Names of the parameters of everything public: functions, classes and their methods."""
    things = {name: getattr(sulq, name) for name in sulq.__all__} | {"Database": Database}
    found = []
    for name, thing in things.items():
        members = [(name, thing)] if callable(thing) else []
        if inspect.isclass(thing):
            members += [(f"{name}.{m}", f) for m, f in inspect.getmembers(thing, callable) if not m.startswith("_")]
        for place, member in members:
            try:
                found.append((place, list(inspect.signature(member).parameters)))
            except (TypeError, ValueError):
                continue
    return found


def test_nothing_public_takes_a_seed_T66() -> None:
    """No parameter, command-line option, setting or environment variable seeds the noise or turns it off (T66, T94).

    Bar: 0 seed surfaces. Control: the search finds one in NumPy.
    """
    shown = signatures()
    assert len(shown) > 40
    assert [place for place, names in shown if set(names) & set(SEEDS)] == []
    options = []
    front = [get_command(app)]
    while front:
        command = front.pop()
        options += [option for parameter in command.params for option in parameter.opts]
        front += list(getattr(command, "commands", {}).values())
    settings = [key for table in SETTINGS.values() for key in table]
    assert options
    assert settings
    assert [word for word in options + settings if any(seed in word.replace("-", "_") for seed in SEEDS)] == []
    assert "seed" in inspect.signature(np.random.default_rng).parameters


def test_no_environment_variable_reaches_the_noise_T66() -> None:
    """The trusted half reads no environment variable (T66, T94). Control: the search finds some elsewhere."""
    home = Path(sulq.__file__).parent

    def read(*parts: str) -> list[str]:
        sources = [path for part in parts for path in sorted((home / part).rglob("*.py"))]
        lines = [line.strip() for path in sources for line in path.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if "os.environ" in line or "getenv" in line]

    spill = 'places = [Path(place) for place in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if place]'
    assert read("kernel", "curator", "language", "answers", "sources") == [spill]  # the folder of what is spilled
    assert read("server", "cli")


@pytest.mark.parametrize("kind", ENGINES)
def test_a_forked_child_must_open_its_own_database_T67(kind: str) -> None:
    """After a fork every call of the child is refused with `forked`, and the parent goes on (T67)."""
    with opened(TABLE, columns=COLUMNS, engine=kind, budget=Epsilon(9)) as db:
        db.count(spend=Epsilon(1))
        calls = {
            "ask": lambda: db.count(spend=Epsilon(1), fresh=True), "spent": lambda: db.spent, "facts": lambda: db.facts,
            "foresee": lambda: db.foresee(Sums((Lit(1),)), spend=Epsilon(1)), "transcript": db.transcript,
            "verify": db.verify, "prepare": db.prepare,
        }  # fmt: skip
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover - runs in the child
            found = {}
            for name, call in calls.items():
                try:
                    call()
                    found[name] = "answered"
                except AccessDenied as error:
                    found[name] = error.code
                except BaseException as error:  # noqa: BLE001 - the parent compares
                    found[name] = repr(error)
            db.close()
            found["repr"] = repr(db)
            os.write(send, json.dumps(found).encode())
            os._exit(0)
        os.close(send)
        with os.fdopen(receive, "rb") as pipe:
            found = json.loads(pipe.read())
        os.waitpid(child, 0)
        assert found.pop("repr") == "<sulq database: forked>"
        assert found == dict.fromkeys(calls, "forked")
        assert db.count(spend=Epsilon(1), fresh=True).receipt.seq > 1
        assert db.spent == Epsilon(2)


def test_a_forked_child_comes_to_no_engine_T67(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ask of new noise is refused before the rows are made ready: the engine's threads are the parent's (T67).

    Bar: 0 looks at the rows. Control: the parent's own ask looks at them.
    """
    with opened(TABLE, columns=COLUMNS, budget=Epsilon(9)) as db:
        rows = db._oracle.curator._rows
        looks, ready = [], rows.ready
        monkeypatch.setattr(rows, "ready", lambda: (looks.append(1), ready())[1])
        with monkeypatch.context() as child:
            child.setattr(os, "getpid", lambda: 0)
            with pytest.raises(AccessDenied) as refused:
                db.count(spend=Epsilon(1), fresh=True)
        assert (refused.value.code, looks) == ("forked", [])
        db.count(spend=Epsilon(1), fresh=True)
        assert looks


CHILDREN = """
import faulthandler, json, os, sys
import pyarrow as pa, sulq
from sulq import Epsilon, Rho, SubLinear, Int
table = pa.table({"x": [1, 2, 3]})
def draws():
    found = []
    coins = SubLinear(1, 1e-3, 50, "binomial")
    for budget, spend in ((Epsilon(9), Epsilon(0.001)), (Rho(9), Rho(1e-8)), (coins, None)):
        with sulq.connect(table, columns={"x": Int(0, 9)}, budget=budget, size=3) as db:
            found += [db.count(spend=spend, fresh=True).value for _ in range(10)]
    return found
draws()  # whatever is cached or buffered is so before the fork
pipes = []
for _ in range(int(sys.argv[1])):
    receive, send = os.pipe()
    if os.fork() == 0:
        faulthandler.dump_traceback_later(300, exit=True)  # a child that hangs says where
        os.write(send, json.dumps(draws()).encode())
        os._exit(0)
    os.close(send)
    pipes.append(receive)
print(json.dumps([json.loads(os.fdopen(pipe, "rb").read()) for pipe in pipes]))
"""


@pytest.mark.audit
def test_children_of_one_process_draw_different_noise_T67() -> None:
    """Forked children that ask the same draw differently, for all three mechanisms (T67).

    Bar: 0 equal sequences over 64 children of 10 draws. Control: forked NumPy generators all agree.
    """
    children = counts.count("forked children", short=6, long=64)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", CHILDREN, str(children)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == children
    for part in (slice(0, 10), slice(10, 20), slice(20, 30)):
        assert len({tuple(draws[part]) for draws in found}) == children
    generator = np.random.default_rng()
    state = generator.bit_generator.state
    copies = set()
    for _ in range(3):
        generator.bit_generator.state = state
        copies.add(tuple(generator.integers(0, 2**60, 10)))
    assert len(copies) == 1


PARSED = """
import os
import duckdb
from sulq.kernel.tree import parse
def threads():
    return len(os.listdir("/proc/self/task"))
before = threads()
parse("SELECT 1")
parsed = threads()
with duckdb.connect(config={"threads": 1}):
    print(parsed - before, threads() - parsed)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_what_stays_open_across_a_fork_has_no_threads_T67() -> None:
    """The parser is open until the process ends, and a fork copies no thread that holds a lock of its (T67).

    Control: an ordinary database of one thread starts others.
    """
    done = subprocess.run([sys.executable, "-c", PARSED], capture_output=True, text=True, check=True)
    parser, ordinary = map(int, done.stdout.split())
    assert parser == 0 < ordinary


def fails(*_: object) -> bytes:
    raise OSError("no entropy")


@pytest.mark.parametrize("budget", [Epsilon(5), Rho(5), EpsilonDelta(5, 1e-6)])
def test_without_entropy_there_is_no_answer_and_the_charge_stands_T68(
    budget: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the sampler's source fails the analyst gets `noise-failed`, is charged, and no number leaves (T68, S0.29).

    Control: with entropy the same question is answered.
    """
    spend = Rho(1) if isinstance(budget, Rho) else Epsilon(1)
    question = Sums((Lit(1),), None, (Bins(sulq.col("x"), (0, 5, 9)),))
    with opened(TABLE, columns=COLUMNS, budget=budget) as db:
        assert db.ask(question, spend=spend).value
        spent = db.spent
        monkeypatch.setattr(entropy, "random_bytes", fails)
        with pytest.raises(CuratorError) as failed:
            db.ask(question, spend=spend)
        assert failed.value.code == "noise-failed"
        assert failed.value.__context__ is None
        assert db.spent != spent
        assert db.transcript()[-1]["answer"] is None


def test_the_survey_coins_fail_closed_T68(monkeypatch: pytest.MonkeyPatch) -> None:
    """Binomial noise without the system's random bytes is no noise: nothing is released, the query is spent (T68)."""
    with opened(TABLE, columns=COLUMNS, budget=SubLinear(1, 1e-3, 50, "binomial"), size=3) as db:
        db.count()
        sources = iter([os.urandom])  # the debit has its random bytes, the coins have none
        monkeypatch.setattr(os, "urandom", lambda count: next(sources, fails)(count))  # noqa: PLW0108 - anew each time
        with pytest.raises(CuratorError) as failed:
            db.count(fresh=True)
        assert failed.value.code == "noise-failed"
        assert db.spent.queries == 2


def test_without_entropy_nothing_is_debited_T68(monkeypatch: pytest.MonkeyPatch) -> None:
    """A debit that could be taken for another is not written: the ask is refused, free, and answered later."""
    with opened(TABLE, columns=COLUMNS, budget=Epsilon(5)) as db:
        with monkeypatch.context() as broken:
            broken.setattr(os, "urandom", fails)
            with pytest.raises(SetupError) as refused:
                db.count(spend=Epsilon(1))
            assert refused.value.code == "no-entropy"
        assert db.transcript() == []
        assert db.spent.amount == 0
        assert db.count(spend=Epsilon(1)).spent == Epsilon(1)
