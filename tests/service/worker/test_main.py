"""A worker as a process: it acts on receipts of its own seal, once, and on nothing else."""

from __future__ import annotations

import contextlib
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sulq
from sulq.answers import wire
from sulq.answers.plan import Plan
from sulq.answers.released import Released
from sulq.cli import app
from sulq.compile.plan import draw
from sulq.errors import QuestionError, SulqError
from sulq.kernel.ledger.chain import Seal
from sulq.language.facts import Facts
from sulq.language.question import Holistic
from sulq.language.statistic import Aggregated
from sulq.service import ipc
from sulq.service.clerk.registration import declare
from sulq.service.sandbox import isolation
from sulq.service.settings import DatasetSettings
from sulq.service.supervisor import process
from sulq.service.worker.main import OpenRows
from sulq.sources.erasure import digest_of
from tests.service.service import COLUMNS, found_by_children, service, survey

KEY = bytes(range(32))


class Started:
    """A worker's socket, and the plan of a question it can answer."""

    def __init__(self, sock: socket.socket, declared: DatasetSettings) -> None:
        self.sock = sock
        self.seal = Seal(KEY)
        schema = declared.tables[0].facts.schema
        facts = Facts(schema, declared.unit, declared.budget, declared.budget, declared.budget)
        self.plan: Plan = draw(sulq.Sums((sulq.lit(1),)), facts, sulq.Epsilon(1))
        self.other: Plan = draw(sulq.Sums((sulq.lit(2),)), facts, sulq.Epsilon(1))

    def run(self, receipt: object, plan: object = None) -> dict:
        text = wire.encode(plan or self.plan)
        return self.said({"run": text, "receipt": wire.to_json(receipt)})

    def said(self, frame: dict) -> dict:
        ipc.send(self.sock, frame)
        return ipc.receive(self.sock)


@contextlib.contextmanager
def worker(module: str = "") -> Iterator[Started]:
    """A worker without a service around it."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as name, found_by_children(module):
        folder = Path(name)
        declared = declare(
            "survey", survey(folder / "survey.parquet"), COLUMNS, unit=sulq.Unit("person"), budget=sulq.Epsilon(9)
        )
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(folder / "w.sock"))
            listener.listen(5)
            settings = {
                "name": "w", "generation": 1, "listen": listener.fileno(), "dataset": declared.to_json(),
                "hash_key": "00" * 32, "space": "space", "key": KEY.hex(), "memory": 4096,
                "outside": isolation.network(),
            }  # fmt: skip
            child = process.launched("worker", settings, [listener.fileno()], folder / "spill")
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                    sock.settimeout(300)
                    sock.connect(str(folder / "w.sock"))
                    assert ipc.receive(sock)["sources"].keys() == {"survey"}
                    yield Started(sock, declared)
            finally:
                child.kill()
                child.wait()
                child.stdin.close()


def replayed(module: str = "") -> list[dict]:
    """What a worker says to a plan without its receipt, with others' receipts, with its own, and with that again."""
    with worker(module) as found:
        digest = wire.digest(found.plan)
        given = [
            Seal(b"another seal's key" * 2).stamp(1, "01" * 32, digest, found.plan.event),
            found.seal.stamp(2, "02" * 32, wire.digest(found.other), found.plan.event),
            found.seal.stamp(3, "03" * 32, digest, found.plan.event),
        ]
        said = [found.run(None), *(found.run(receipt) for receipt in given), found.run(given[-1])]
        forged = wire.to_json(given[-1]) | {"seq": 4}
        return [*said, found.run(wire.from_json(forged))]


def test_a_worker_acts_on_its_own_receipts_and_once_T43_T60() -> None:
    """No receipt, another seal's, another plan's, a used one, a forged one: refused. Its own: released integers."""
    said = replayed()
    assert [reply.get("failed") for reply in said] == ["bad-receipt"] * 3 + [None] + ["bad-receipt"] * 2
    (released,) = wire.from_json(said[3]["released"])
    assert isinstance(released, Released)
    assert abs(int(released.units[0, 0]) - 2000) < 100


def test_a_worker_that_forgets_is_caught_T60() -> None:
    """Control: a worker that does not remember its receipts runs one twice, and the test above would fail."""
    said = replayed("tests.service.forgetful_worker")
    assert "released" in said[4]


def test_a_worker_goes_on_for_the_next_clerk() -> None:
    """When its clerk goes away between questions it waits for the next, and remembers what it acted on."""
    with worker() as found:
        receipt = found.seal.stamp(7, "07" * 32, wire.digest(found.plan), found.plan.event)
        assert "released" in found.run(receipt)
        path = found.sock.getpeername()
        found.sock.close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as again:
            again.settimeout(300)
            again.connect(path)
            assert ipc.receive(again)["generation"] == 1
            found.sock = again
            assert found.run(receipt) == {"failed": "bad-receipt"}
            ipc.send(again, {"ready": True})
            assert ipc.receive(again) == {"ready": True}


def test_a_worker_certifies_a_plan_before_it_is_paid_for() -> None:
    """What was certified is run for its receipt alone, once; what was not is unknown, and its receipt stays good.

    Controls: a plan for half its price, and texts that are no plan, are refused in the words of the door.
    """
    with worker() as found:
        receipt = found.seal.stamp(1, "01" * 32, wire.digest(found.plan), found.plan.event)
        alone = {"run": None, "receipt": wire.to_json(receipt)}
        assert found.said(alone) == {"unknown": True}
        cheap = replace(found.plan, event=replace(found.plan.event, epsilon=found.plan.event.epsilon / 2))
        for text in (wire.encode(cheap), "{}", "", "[1", '{"kind":"Plan"}', wire.encode(sulq.Unit())):
            told = found.said({"check": text})["refused"]
            assert (told["kind"], told["code"]) == ("QuestionError", "uncertified")
        assert found.said({"check": 7}) == {"failed": "bad-receipt"}
        assert found.said(alone) == {"unknown": True}
        assert found.said({"check": wire.encode(found.plan), "whose": "alice"}) == {"certified": True}
        assert found.said(alone) == {"unknown": True}  # to another asker (T39)
        mine = alone | {"whose": "alice"}
        assert found.said(mine | {"receipt": wire.to_json(receipt) | {"seq": 4}}) == {"failed": "bad-receipt"}
        assert "released" in found.said(mine)
        assert found.said(mine) == {"failed": "bad-receipt"}


def test_what_a_worker_does_not_certify_is_free() -> None:
    """The analyst hears it in the words of the door, nothing is spent, and no receipt is given.

    Control: what the same worker certifies is answered and charged.
    """
    spend = wire.to_json(sulq.Epsilon(1))
    with service(workers=1, worker="tests.service.doubting_worker") as running:
        before = running.ask("alice", "facts")
        for _ in range(2):
            with pytest.raises(QuestionError) as refused:
                running.ask("alice", "ask", {"question": wire.to_json(sulq.Sums((sulq.col("age"),))), "spend": spend})
            assert refused.value.code == "uncertified"
            assert refused.value.message.startswith("The kernel does not certify this question: one person moves")
        assert running.ask("alice", "facts") == before
        running.ask("alice", "ask", {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": spend})
        assert running.ask("alice", "facts") != before


def test_a_worker_trusts_no_check_but_its_own() -> None:
    """A receipt of its own seal for a plan that pays too little: not run, though the seal is right."""
    with worker() as found:
        cheap = replace(found.plan, event=replace(found.plan.event, epsilon=found.plan.event.epsilon / 2))
        receipt = found.seal.stamp(1, "01" * 32, wire.digest(cheap), cheap.event)
        assert found.run(receipt, cheap) == {"failed": "uncertified"}


def test_a_worker_runs_no_plan_for_a_smaller_debit_T43() -> None:
    """A deceiver: a receipt of its own seal, for this plan, of a debit that is smaller than the plan's; not run.

    Not where the worker is sent the text, and not where it knows it. Control: for the plan's own event it is run.
    """
    with worker() as found:
        event, digest = found.plan.event, wire.digest(found.plan)
        for text in (wire.encode(found.plan), None):
            for seq, smaller in enumerate((replace(event, epsilon=event.epsilon / 9), replace(event, draws=())), 1):
                receipt = found.seal.stamp(seq, "01" * 32, digest, smaller)
                assert found.said({"run": text, "receipt": wire.to_json(receipt)}) == {"failed": "bad-receipt"}
            assert found.said({"check": wire.encode(found.plan)}) == {"certified": True}
        assert "released" in found.run(found.seal.stamp(1, "01" * 32, digest, event))


@pytest.mark.parametrize("frame", [{}, {"run": 7}, {"run": "{}"}, {"run": "x", "receipt": {"kind": "Unit"}}])
def test_what_is_no_question_is_refused_by_a_code(frame: dict) -> None:
    """Whatever reaches the socket, a worker says one of its codes and goes on."""
    with worker() as found:
        ipc.send(found.sock, frame)
        said = ipc.receive(found.sock)
        assert said in ({"ready": True}, {"failed": "bad-receipt"}, {"failed": "engine-failed"}) or "stopped" in said
        assert "released" in found.run(found.seal.stamp(1, "01" * 32, wire.digest(found.plan), found.plan.event))


def test_what_an_owner_declares_is_asked_by_name_over_http_S4_27_S3_31_S4_28(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stated sensitivity, a utility with a base measure and a property, from a far client and by the command line.

    The functions run in the worker alone. Control: what nobody declared is refused, and costs nothing.
    """
    source = """
def old(rows): return (rows[:, 0] > 60).sum()
def sides(rows): return [(rows[:, 0] <= 60).sum(), (rows[:, 0] > 60).sum()]
def few(rows): return len(rows) <= 10
"""
    (tmp_path / "owners_word.py").write_text(source, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    own = {
        "old": ("owners_word:old", sulq.Stated(1, 0, 5000, ("age",))),
        "sides": ("owners_word:sides", sulq.Utility(("young", ["old", "er"]), 1, 0, 5000, ("age",), (1, 3))),
        "few": ("owners_word:few", sulq.Property(("city",), 12)),
        "sums": sulq.Utility({"young": sulq.col("age") <= 60, "old": sulq.col("age") > 60}),
    }
    ages = np.array([18 + (i * 37) % 70 for i in range(2000)])
    best = int((ages > 60).sum() > (ages <= 60).sum())
    with (
        service(workers=1, web=1, estimators=own) as running,
        sulq.connect(f"{running.url}/survey", token=running.tokens["alice"]) as db,
    ):
        assert db.statistic("old", spend=sulq.Epsilon(5)).value == pytest.approx((ages > 60).sum(), abs=6)
        assert "sides: owners_word:sides a utility of 2 candidates, weighted" in str(db.facts)
        for name in ("sides", "sums"):
            found = sulq.select.choose(db, name, spend=sulq.Epsilon(5))
            assert found.place == best
        answer = db.distance_from("few", spend=sulq.Epsilon(5))
        assert answer.value == pytest.approx(2000 - 10, abs=30)
        assert "rests on the property few (declared by the owner)" in answer.notes
        spent = db.spent
        for ask in (
            lambda: db.statistic("sides", spend=sulq.Epsilon(5)),
            lambda: db.distance_from("old", spend=sulq.Epsilon(5)),
        ):
            with pytest.raises(QuestionError) as refused:
                ask()
            assert refused.value.code == "not-certified"
        assert db.spent == spent
        monkeypatch.setenv("SULQ_TOKEN", running.tokens["alice"])
        told = CliRunner().invoke(
            app, ["release", "choose", f"{running.url}/survey", "--candidates", "sides", "--epsilon", "5"]
        )
        assert told.exit_code == 0, told.output
        assert "the chosen one of 2" in told.output
    assert "owners_word" not in sys.modules


def test_an_owners_function_is_found_and_called_where_the_rows_are_SR5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package on PYTHONPATH is imported by the worker alone, and an analyst's question by its name is answered.

    Control: a package that is not there is the owner's to hear of, by its name; the analyst hears that nothing is
    ready, and nothing is charged.
    """
    (tmp_path / "owners_rows.py").write_text("def third(rows): return rows[:, 0].mean() / 3\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    body = {
        "question": wire.to_json(Holistic(Aggregated("third", ("age",), 10, 0, 60))),
        "spend": wire.to_json(sulq.Epsilon(50)),
    }
    with service(workers=1, estimators={"third": "owners_rows:third"}) as running:
        found = wire.from_json(running.ask("alice", "ask", body)["answer"])
        assert abs(found.value - np.mean([18 + (i * 37) % 70 for i in range(2000)]) / 3) < 2.5  # the middle is 30
        assert "estimator third (declared by the owner)" in repr(found)
    assert "owners_rows" not in sys.modules
    with service(workers=1, estimators={"third": "owners_other:third"}, wait=False) as running:
        until = time.monotonic() + 120
        problem = None
        while problem is None and time.monotonic() < until:
            with contextlib.suppress(SulqError):
                problem = next((d["problem"] for d in running.ask("owner", "datasets")["datasets"]), None)
            time.sleep(0.1)
        assert problem["code"] == "bad-declaration"
        assert "'third' was not found: owners_other:third" in problem["message"]
        assert "PYTHONPATH" in problem["remedy"]
        with pytest.raises(SulqError) as refused:
            running.ask("alice", "ask", body)
        assert (refused.value.code, "owners_other" in str(refused.value)) == ("not-ready", False)


def test_a_worker_s_rows_are_without_erased_persons(tmp_path: Path) -> None:
    """By the digests that the clerk sends with the key; control: without them the rows are there."""
    data = pa.table({"pid": ["a", "a", "b"], "x": [1, 2, 3]})
    pq.write_table(data, tmp_path / "t.parquet")
    declared = declare(
        "t", tmp_path / "t.parquet", {"x": (0, 9)}, budget=sulq.Epsilon(1), unit=sulq.Unit("pid", rows=2),
        ledger=tmp_path / "t.ledger", prepared=tmp_path / "t.prepared",
    )  # fmt: skip
    for erased, rows in (((), 3), ((digest_of(KEY, "a"),), 1)):
        opened = OpenRows(declared, KEY, "space", Seal(KEY), erased)
        opened.engine.close()
        with duckdb.connect(str(tmp_path / "t.prepared"), read_only=True) as copy:
            assert copy.execute("SELECT count(*) FROM kept").fetchone() == (rows,)
