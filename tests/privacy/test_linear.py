"""Linearizability: whatever threads and processes do with one ledger at once, one order of it explains all they saw."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from tests.counts import count
from tests.curator.ledger.cases import ask, opened, pure
from tests.curator.ledger.places import STORES, empty
from tests.postgres import server
from tests.privacy.crowds import SHARES
from tests.privacy.histories import Act, Entry, Terms, disorder

ROOT = Path(__file__).resolve().parents[2]
ROUND = 5_000
HAPPENS = {
    ("read", "read"), ("debit", "granted"), ("debit", "refused"), ("debit", "stored"), ("keep", "kept"),
    ("any", "cut short"),
}  # fmt: skip


def crowd(acts: int, *words: str, store: str = "sqlite") -> tuple[list[Act], list[Entry], Terms]:
    """Run tests/privacy/crowds.py: what was done, the chain, the owner's terms."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    where = "file" if store == "sqlite" else server().url()
    done = subprocess.run(
        [sys.executable, "-m", "tests.privacy.crowds", str(acts), str(random.randrange(2**32)), where, *words],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    log = [Entry(*line) for line in told["log"]]
    shares = {name: (Fraction(share), Fraction(reserve)) for name, (share, reserve) in SHARES.items()}
    return _acts(told["records"], {entry.name: entry.seq for entry in log}), log, Terms(told["budget"], shares)


def _acts(records: list[dict], places: dict[str, int]) -> list[Act]:
    """Notes put together: what began, when it was first told, and what."""
    acts: dict[tuple[int, int], Act] = {}
    for record in records:
        name = (record.pop("pid"), record.pop("number"))
        if "begun" in record:
            acts[name] = Act(**record)
            continue
        act = acts[name]
        record["ended"] = min(act.ended, record["ended"])
        for field, value in record.items():
            setattr(act, field, value)
    for act in acts.values():
        if act.outcome == "hasty":
            act.outcome, act.seq = "granted", places.get(act.name, 0)
    return list(acts.values())


@pytest.mark.parametrize("store", STORES)
def test_one_order_explains_all_that_was_seen_T42(store: str) -> None:
    """Debits by analysts with shares, reads of standings, repeats by key, processes killed between (T42, T44, T54).

    Bar: 0 acts that no order explains in 1e6. Control: stale reads and debits told too early (below).
    """
    short = 2 * ROUND if store == "sqlite" else ROUND // 5
    long = 1_000_000 if store == "sqlite" else 100_000
    left = count(f"T42 acts in linearizable histories, {store}", short=short, long=long)
    seen: set[tuple[str, str]] = set()
    more = 20  # rounds until all that may happen did, or the test shows less than it says
    while left > 0 or (more and not seen >= HAPPENS):
        more -= left <= 0
        acts, log, terms = crowd(min(ROUND, max(left, ROUND // 5)), store=store)
        assert disorder(acts, log, terms) == []
        seen |= {(act.what, act.outcome) if act.outcome else ("any", "cut short") for act in acts}
        left -= len([act for act in acts if act.outcome])
    assert seen >= HAPPENS


@pytest.mark.parametrize("kind", STORES)
def test_a_read_between_debits_sees_others_and_disturbs_none_T42(kind: str) -> None:
    """One server alone for a while, then another's debit seen by a read, then the first one's debit again."""
    with empty(kind) as place, opened(place) as first, opened(place) as second:
        for _ in range(30):
            ask(first, pure("0.01"))
        ask(second, pure("0.01"))
        assert first.spent.amount == Fraction(31, 100)
        ask(first, pure("0.01"))
        assert second.spent.amount == Fraction(32, 100)


@pytest.mark.parametrize("kind", ["stale", "hasty"])
def test_a_ledger_that_is_stale_or_hasty_is_noticed_T42(kind: str) -> None:
    """Control: reads that do not look at the file, and debits told a moment before their commit."""
    assert any(disorder(*crowd(1_500, kind)) for _ in range(12))


HALF = Fraction(1, 2)
TERMS = Terms(10, {"ann": (HALF, HALF), "bob": (Fraction(1), Fraction(0))})
LOG = [Entry(2, "ann", 3, "a"), Entry(3, "bob", 4, "b", "k")]
GOOD = [
    Act("debit", 0, 10, "granted", "ann", 3, "a", None, 2),
    Act("debit", 20, 30, "granted", "bob", 4, "b", "k", 3),
    Act("keep", 31, 35, "kept", seq=3, answer="x"),
    Act("read", 5, 15, "read", None, spent=3),
    Act("read", 12, 25, "read", "ann", spent=3, left=2),
    Act("read", 40, 50, "read", "bob", spent=4, left=1),
    Act("debit", 40, 50, "refused", "bob", 2, "c"),
    Act("debit", 21, 50, "answer-lost", "bob", 4, "b", "k"),
    Act("debit", 40, 50, "stored", "bob", 4, "b", "k", 3, answer="x"),
    Act("debit", 60, outcome="", analyst="ann", cost=1, name="d"),
    Act("debit", 60, 70, "ledger-busy", "ann", 1, "e"),
]


def test_a_history_that_is_right_is_taken_T42() -> None:
    """With one entry more, of somebody who was killed before being told, it is right as well."""
    assert disorder(GOOD, LOG, TERMS) == []
    assert disorder(GOOD, [*LOG, Entry(4, "ann", 1, "d")], TERMS) == []


@pytest.mark.parametrize(
    "bad",
    [
        Act("debit", 0, 5, "granted", "ann", 1, "z", None, 9),  # lost
        Act("debit", 0, 5, "granted", "ann", 3, "a", None, 2),  # one entry for two
        Act("read", 40, 50, "read", None, spent=3),  # stale
        Act("read", 0, 5, "read", None, spent=7),  # foreseen
        Act("read", 0, 90, "read", None, spent=5),  # never so
        Act("read", 16, 18, "read", "bob", spent=0, left=7),  # never so much left
        Act("debit", 40, 50, "refused", "bob", 1, "c"),  # there was room
        Act("debit", 15, 19, "refused", "bob", 5, "c"),  # likewise, then
        Act("debit", 40, 50, "refused", "bob", 4, "b", "k"),  # its key was charged
        Act("debit", 40, 50, "stored", "bob", 4, "b", "k", 3, answer="y"),  # another answer
        Act("debit", 21, 30, "stored", "bob", 4, "b", "k", 3, answer="x"),  # before it was kept
        Act("debit", 40, 50, "answer-lost", "bob", 4, "b", "k"),  # it was kept
        Act("debit", 0, 5, "answer-lost", "bob", 4, "n", "never"),  # it was never asked
        Act("debit", 0, 5, "engine-failed", "bob", 4, "n"),  # no such outcome
    ],
)  # fmt: skip
def test_a_history_that_is_wrong_is_noticed_T42(bad: Act) -> None:
    """Control: each kind of wrong by itself."""
    assert len(disorder([*GOOD, bad], LOG, TERMS)) == 1


def test_an_order_against_the_clock_or_past_a_limit_is_noticed_T42() -> None:
    """Control: entries the wrong way round, two reads that go back, an entry of nobody, of a used key, past a share."""
    swapped = [Entry(2, "bob", 4, "b", "k"), Entry(3, "ann", 3, "a")]
    acts = [
        Act("debit", 0, 10, "granted", "ann", 3, "a", None, 3),
        Act("debit", 20, 30, "granted", "bob", 4, "b", "k", 2),
    ]
    assert len(disorder(acts, swapped, TERMS)) == 1
    back = [Act("read", 21, 23, "read", None, spent=7), Act("read", 24, 26, "read", None, spent=3)]
    assert disorder([*GOOD, back[0]], LOG, TERMS) == []
    assert disorder([*GOOD, back[1]], LOG, TERMS) == []
    assert len(disorder([*GOOD, *back], LOG, TERMS)) == 1
    assert len(disorder(GOOD, [*LOG, Entry(4, "ann", 1, "n")], TERMS)) == 1
    twice = Act("debit", 60, outcome="", analyst="bob", cost=1, name="b", key="k")
    assert len(disorder([*GOOD, twice], [*LOG, Entry(4, "bob", 1, "b", "k")], TERMS)) == 1
    past = Act("debit", 60, 70, "granted", "ann", 3, "p", None, 4)
    assert len(disorder([*GOOD, past], [*LOG, Entry(4, "ann", 3, "p")], TERMS)) == 1
