"""The ledger through calls: shares, transcripts, receipts and verification, each to whom it belongs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

import sulq
from sulq.answers import wire
from sulq.errors import AccessDenied, BudgetExceeded, QuestionError, SetupError
from sulq.service.clerk.worker_pool import OpenDataset
from tests.service.clerk.test_calls import ONE
from tests.service.service import Running, clerk_alone


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with clerk_alone(sulq.Epsilon(10)) as found:
        yield found


def asked(running: Running, who: str, epsilon: float = 0.5, **more: object):
    body = {**ONE, "spend": wire.to_json(sulq.Epsilon(epsilon)), **more}
    return wire.from_json(running.ask(who, "ask", body)["answer"])


def test_each_sees_its_own_lines_and_receipts(running: Running) -> None:
    """An analyst's transcript and receipts are its own; the owner and the auditor see all."""
    of = {who: asked(running, who).receipt.seq for who in ("alice", "bob", "owner")}
    for who, seq in of.items():
        lines = running.ask(who, "transcript")["lines"]
        assert seq in [line["seq"] for line in lines]
        assert {line["analyst"] for line in lines} == ({who} if who != "owner" else {"alice", "bob", "owner"})
        assert running.ask(who, "receipt", {"seq": seq})["receipt"]["analyst"] == who
    for body in ({"seq": of["bob"]}, {"seq": 1}, {"seq": 10**9}):
        with pytest.raises((QuestionError, AccessDenied)):
            running.ask("alice", "receipt", body)
    assert running.ask("auditor", "receipt", {"seq": of["bob"]})
    page = running.ask("auditor", "transcript", {"after": of["alice"], "limit": 1})
    assert [line["seq"] for line in page["lines"]] == [of["bob"]]


def test_verification_and_export_agree_with_the_head(running: Running) -> None:
    """The report's head is the ledger's, and the export holds every line with what checks its receipts."""
    running.clerk.datasets["survey"].open_ledger().flush()  # answers of asks before it would move the head
    report = running.ask("auditor", "verify")
    exported = running.ask("auditor", "export")
    heads = [report["head"], running.ask("auditor", "verify")["head"]]  # a late answer may be written in between
    assert exported["report"]["head"] in heads
    assert len(exported["lines"]) == report["debits"]
    assert len(bytes.fromhex(exported["public_key"])) == 32


def test_the_report_says_what_the_whole_ledger_means_T79(running: Running) -> None:
    """Two analysts' answers count together for who may verify; an analyst's own facts say that they are its own."""
    for who in ("alice", "bob"):
        asked(running, who, 0.1)
    report = running.ask("auditor", "verify")
    facts = wire.from_json(running.ask("alice", "facts")["facts"])
    assert (facts.whose, facts.spent.amount < wire.from_json(report["spent"]).amount) == ("analyst", True)
    assert wire.from_json(report["unit"]) == facts.unit
    assert wire.from_json(running.ask("auditor", "facts")["facts"]).whose == "everyone"
    with pytest.raises(AccessDenied):
        running.ask("alice", "verify")


def test_a_share_binds_and_a_reserve_is_kept_T54_T55(running: Running) -> None:
    """Past its share an analyst is refused, and others what is kept for it; it is shown its own share alone."""
    running.ask("owner", "share", {"analyst": "alice", "share": 0.3, "reserve": 0.3})
    with pytest.raises(BudgetExceeded):
        asked(running, "alice", 3.2)
    with pytest.raises(BudgetExceeded):
        asked(running, "bob", 7.2)
    shares = {item["analyst"]: item for item in running.ask("owner", "budget")["shares"]}
    assert {"alice", "bob"} <= set(shares)
    assert [item["analyst"] for item in running.ask("alice", "budget")["shares"]] == ["alice"]
    assert shares["alice"]["share"] == 0.3
    for body in (
        {"analyst": "alice", "share": 2}, {"analyst": "alice"}, {"analyst": 1, "share": 0.1},
        {"analyst": "alice", "share": 0.1, "reserve": 0.2}, {"analyst": "", "share": 0.1},
    ):  # fmt: skip
        with pytest.raises((QuestionError, SetupError, AccessDenied)):
            running.ask("owner", "share", body)


def test_a_share_is_somebodys(running: Running) -> None:
    """A name that was never let in is refused with the nearest one; the control: an ended token's share may change."""
    with pytest.raises(AccessDenied) as refused:
        running.ask("owner", "share", {"analyst": "alcie", "share": 0.1})
    assert refused.value.code == "not-found"
    assert "'alice'" in refused.value.message
    assert "alcie" not in [item["analyst"] for item in running.ask("owner", "budget")["shares"]]
    running.ask("owner", "add_principal", {"name": "gone", "role": "analyst", "datasets": ["survey"]})
    running.ask("owner", "share", {"analyst": "gone", "share": 0.1, "reserve": 0.05})
    running.ask("owner", "revoke", {"name": "gone"})
    assert running.ask("owner", "share", {"analyst": "gone", "share": 0.1}) == {"analyst": "gone"}


def test_somebody_is_let_in_for_datasets_there_are(running: Running) -> None:
    """A misspelt dataset is refused with the nearest one, and nobody is let in."""
    with pytest.raises(QuestionError) as refused:
        running.ask("owner", "add_principal", {"name": "carol", "role": "analyst", "datasets": ["survy"]})
    assert refused.value.code == "bad-principal"
    assert "'survey'" in refused.value.message
    assert "carol" not in [item["name"] for item in running.ask("owner", "principals")["principals"]]


def test_who_reads_of_one_dataset_reads_of_no_other_in_its_ledger_T79(running: Running) -> None:
    """Two datasets of one person space: an auditor of one finds neither lines nor receipts of the other.

    Control: the auditor of all finds both, and those of no dataset, which an owner's own tools wrote.
    """
    survey = running.clerk.datasets["survey"]
    datasets = cast("dict[str, OpenDataset]", running.clerk.datasets)
    datasets["salary"] = OpenDataset("salary", ledger=survey.ledger, curator=survey.curator)
    for name, scope in (("narrow", ["survey"]), ("other", ["salary"])):
        body = {"name": name, "role": "auditor", "datasets": scope}
        running.tokens[name] = running.ask("owner", "add_principal", body)["token"]
    price = wire.to_json(sulq.Epsilon(0.01))
    seqs = {
        dataset: wire.from_json(running.ask("owner", "ask", {**ONE, "spend": price}, dataset)["answer"]).receipt.seq
        for dataset in ("survey", "salary")
    }
    seqs[""] = survey.opened()[0].ask(wire.from_json(ONE["question"]), spend=sulq.Epsilon(0.01)).receipt.seq
    for who, dataset in (("narrow", "survey"), ("other", "salary")):
        for call in ("transcript", "export"):
            found = running.ask(who, call, dataset=dataset)
            assert {line["dataset"] for line in found["lines"]} == {dataset}
            assert found["datasets"] == [dataset]
        for of, seq in seqs.items():
            if of == dataset:
                assert running.ask(who, "receipt", {"seq": seq}, dataset)["receipt"]["seq"] == seq
                continue
            with pytest.raises(QuestionError) as refused:
                running.ask(who, "receipt", {"seq": seq}, dataset)
            assert refused.value.code == "not-in-ledger"
    every = running.ask("auditor", "export")
    assert every["datasets"] is None
    assert {line["dataset"] for line in every["lines"]} == {"survey", "salary", ""}
    assert all(running.ask("auditor", "receipt", {"seq": seq}) for seq in seqs.values())
    del datasets["salary"]


def test_keys_of_two_analysts_are_apart_T44(running: Running) -> None:
    """The same idempotency key is each analyst's own; asked again by the same one it is free and the same answer."""
    first, other = asked(running, "alice", 0.1, key="k"), asked(running, "bob", 0.2, key="k")
    again = asked(running, "alice", 0.1, key="k")
    assert again.value == first.value
    assert again.receipt.seq == first.receipt.seq != other.receipt.seq


def test_a_stored_answer_is_given_to_its_own_analyst_SR12_T39(running: Running) -> None:
    """Asked again with reuse an analyst has its own answer for nothing; another analyst pays for a new one."""
    first = asked(running, "alice", 0.25, reuse=True)
    assert asked(running, "alice", 0.25, reuse=True).value == first.value
    other = asked(running, "bob", 0.25, reuse=True)
    assert other.receipt.seq != first.receipt.seq
