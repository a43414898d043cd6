"""Asking the same again: the stored answer for nothing, or new noise at full price; never new noise for nothing."""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Int, Queries, Rho, SubLinear, Sums, Together, Unit, col
from sulq.answers.answer import Answer
from sulq.curator.curator import Curator
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.curator.reuse import ReusingOracle
from sulq.curator.run import Rows
from sulq.errors import BudgetExceeded, SetupError, SulqError
from sulq.kernel.mechanisms import MECHANISMS, release
from sulq.kernel.private import Private
from sulq.language.rowfn import Lit
from sulq.testing import neighbours
from sulq.testing.questions import Drawer
from tests import counts
from tests.privacy.cases import opened, people, replayed
from tests.reword import reworded
from tests.sql import queries

TABLE = pa.table({"x": [1, 2, 3], "g": ["a", "b", "b"]})
COLUMNS = {"x": Int(0, 9), "g": sulq.Category(["a", "b"])}
COUNT = Sums((Lit(1),))
ASKS = {
    "count": lambda db, **more: db.count(col("x") > 1, **more),
    "sum": lambda db, **more: db.sum("x", by="g", **more),
    "mean": lambda db, **more: db.mean("x", **more),
    "variance": lambda db, **more: db.variance("x", **more),
    "std": lambda db, **more: db.std("x", ddof=1, **more),
    "covariance": lambda db, **more: db.covariance(["x", col("x") * 2], **more),
    "histogram": lambda db, **more: db.histogram("x", bins=3, **more),
}


class Counted:
    """An engine of zeros and a mechanism that count how often they are called."""

    def __init__(self) -> None:
        self.noises = 0

    def ready(self) -> None:
        """Nothing to do."""

    def sums(self, tally: object) -> Private:
        return Private(np.zeros((tally.cells, tally.width), dtype=np.int64))

    def release(self, law: object, exact: Private) -> np.ndarray:
        self.noises += 1
        return release(law, exact)

    def close(self) -> None:
        """Nothing to do."""


def values(answers: Iterable[Answer]) -> list[list[int]]:
    """All released integers, whatever the order of questions and values."""
    return sorted(sorted(one.released.units.ravel().tolist()) for one in answers)


def faults(pairs: int, rng: np.random.Generator) -> tuple[list[str], int]:
    """What is wrong with pairs of asks, the second in other words at another price; how many were reused."""
    drawer, source, found, reuses = Drawer(rng), Counted(), [], 0
    ledger = Ledger.open(
        None, mechanisms=tuple(MECHANISMS), unit=Unit(), budget=EpsilonDelta(900, 1e-6), synthetic=True
    )
    rows = Rows(source, ledger.redeem).replace_noise(ledger, source.release)
    done = 0
    while done < pairs:
        curator = ReusingOracle(Curator(rows, ledger, neighbours.SCHEMA, size=None, versions=(), scope=str(done)))
        question, kind = drawer.question(), Epsilon if rng.random() < 0.5 else Rho
        spend, times, fresh = 1e-4, float(rng.choice([0.5, 1, 2])), bool(rng.random() < 0.3)
        try:
            first = curator.ask(question, spend=kind(spend), reuse=True)
        except SulqError:
            continue
        noises, before = source.noises, ledger.totals
        second = curator.ask(reworded(question, rng), spend=kind(spend * times), reuse=not fresh)
        mine, other = (answers if isinstance(question, Together) else (answers,) for answers in (first, second))
        done += 1
        reuses += other[0].reused
        if other[0].reused:
            same = values(mine) == values(other)
            free = ledger.totals == before and all(one.spent.amount == 0 for one in other)
            found += [] if same and free and source.noises == noises else ["a stored answer that is new or charged"]
            found += [] if times <= 1 and not fresh else ["a stored answer where a better or a new one was paid for"]
        else:
            charged = ledger.totals.events == before.events + 1 and other[0].spent == kind(spend * times)
            found += [] if charged and source.noises > noises else ["new noise that was not charged"]
            found += [] if times > 1 or fresh else ["the same question charged twice"]
    return found, reuses


@pytest.mark.audit
def test_the_same_stored_answer_for_nothing_or_new_noise_at_full_price_T10() -> None:
    """Random pairs of asks, the second in other words, at another price, fresh or not (T10, SR12, T62).

    Bar: 0 faults in 1e4 pairs. Control: a curator that forgets what an answer was worth
    (test_a_stored_answer_worth_less_is_noticed_T10).
    """
    pairs = counts.count("pairs of asks, the second in other words", short=150, long=4_000)
    found, reuses = faults(pairs, np.random.default_rng(counts.generator("T10").getrandbits(32)))
    assert found == []
    assert 0.2 * pairs < reuses < 0.8 * pairs


def test_a_stored_answer_worth_less_is_noticed_T10(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a curator that gives any stored answer, however coarse, has faults."""
    monkeypatch.setattr("sulq.curator.reuse.serves", lambda *_: True)
    assert "a stored answer where a better or a new one was paid for" in faults(60, np.random.default_rng(1))[0]


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("spend", [Epsilon(0.5), Rho(0.1), EpsilonDelta(0.5, 1e-6)], ids=str)
def test_every_named_ask_reuses_unless_it_is_fresh_T10_SR12(ask: str, spend: sulq.Loss) -> None:
    """Asked again at this price or less: the same numbers for nothing; at more, or fresh: new ones, charged (SR12)."""
    with opened(TABLE, columns=COLUMNS, budget=EpsilonDelta(50, 1e-6), engine="memory") as db:
        first = ASKS[ask](db, spend=spend)
        spent = db.spent
        less = EpsilonDelta(0.49, 1e-6) if isinstance(spend, EpsilonDelta) else spend.share(0.5)
        again, cheaper = ASKS[ask](db, spend=spend), ASKS[ask](db, spend=less)
        assert (first.reused, again.reused) == (False, True)
        assert again.released.units.tobytes() == first.released.units.tobytes()
        assert str(again.value) == str(first.value)
        assert str(again.interval(0.9)) == str(first.interval(0.9))
        assert again.receipt.seq == first.receipt.seq
        assert db.spent == spent
        assert cheaper.reused
        fresh = ASKS[ask](db, spend=spend, fresh=True)
        assert not fresh.reused
        assert fresh.receipt.seq > first.receipt.seq
        assert db.spent != spent
        assert len(db.transcript()) == 2


def test_asks_of_the_language_itself_are_always_new_T10() -> None:
    """`db.ask` draws new noise each time and is charged each time, and so is a named ask after it once (SR12)."""
    with opened(TABLE, columns=COLUMNS, budget=Epsilon(100), engine="memory") as db:
        answers = [db.ask(COUNT, spend=Epsilon(0.05)) for _ in range(60)]
        assert db.spent == Epsilon(3)
        assert not any(answer.reused for answer in answers)
        assert len({answer.value for answer in answers}) > 10  # scale 20: 60 equal-ish draws have probability < 1e-7
        assert db.count(spend=Epsilon(0.05)).receipt.seq == answers[0].receipt.seq
        assert db.count(spend=Epsilon(0.06)).reused is False


def test_within_is_answered_by_what_is_stored_SR12() -> None:
    """An accuracy that a stored answer has costs nothing; a mean's count is bought once (SR7, SR12)."""
    table = pa.table({"x": np.arange(2000) % 10, "g": ["a"] * 2000})
    with opened(table, columns=COLUMNS, budget=Epsilon(100), engine="memory") as db:
        db.count(spend=Epsilon(1))
        spent = db.spent
        assert db.count(within=30).reused
        assert db.count(within=30, beta=0.001).reused
        assert db.spent == spent
        assert not db.count(within=1.5).reused
        asks = [db.mean("x", within=0.5, at_most=Epsilon(20)) for _ in range(2)]
        assert [answer.reused for answer in asks] == [False, True]
        assert len(db.transcript()) == 4


def test_under_SubLinear_a_repeat_costs_no_query_SR12() -> None:
    """Where the noise is fixed every stored answer is as good as a new one; fresh=True costs a query (S0.8)."""
    with opened(TABLE, columns=COLUMNS, budget=SubLinear(1, 1e-6, queries=3), engine="memory") as db:
        first = db.count()
        again = db.count()
        assert (again.value, again.spent, again.reused) == (first.value, Queries(0), True)
        assert db.spent == Queries(1)
        db.count(fresh=True)
        assert db.spent == Queries(2)


def test_an_exhausted_budget_still_gives_what_it_gave_SR12() -> None:
    """A stored answer needs no budget; what was never asked does."""
    with opened(TABLE, columns=COLUMNS, budget=Epsilon(1), engine="memory") as db:
        first = db.count(spend=Epsilon(1))
        assert db.count(spend=Epsilon(1)).value == first.value
        with pytest.raises(BudgetExceeded):
            db.sum("x", spend=Epsilon(0.1))


PROCESS = """
import json, sys
import sulq
from sulq import Epsilon, Int
path, options = sys.argv[1], json.loads(sys.argv[2])
columns = {"x": Int(0, options.pop("high")), "g": sulq.Category(["a", "b"])}
with sulq.connect(path, columns=columns, budget=Epsilon(10), engine="memory", **options) as db:
    answer = db.sum("x", by="g", where=(sulq.col("x") > 0) & (sulq.col("g") == "b"), spend=Epsilon(1))
    print(json.dumps([answer.to_dict(), answer.reused, float(db.spent.amount), db.facts.version]))
"""


def asked(path: Path, **options: object) -> list[object]:
    """What a process of its own is answered."""
    words = [sys.executable, "-c", PROCESS, str(path), json.dumps({"high": 9} | options)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return json.loads(found.stdout) if found.returncode == 0 else [found.stderr]


def test_answers_are_reused_across_processes_and_not_across_versions_T39_SR12(tmp_path: Path) -> None:
    """Another process gets the stored answer for nothing; after a registration the same words ask anew (SR12, T39)."""
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path)
    first, again = asked(path), asked(path)
    assert (first[1], again[1]) == (False, True)
    assert again[0] == first[0]
    assert (first[2], again[2]) == (1, 1)
    pq.write_table(pa.concat_tables([TABLE] * 40), path)
    assert "source-changed" in asked(path)[0]  # the owner is stopped; no analyst learns of it
    renewed = asked(path, renew=True)
    assert (renewed[1], renewed[2], renewed[3]) == (False, 2, first[3] + 1)
    assert asked(path)[1] is True
    declared = asked(path, high=8)
    assert (declared[1], declared[2]) == (False, 3)


def test_a_live_neighbour_soon_sees_an_answer_SR12(tmp_path: Path) -> None:
    """Two openings of one ledger: what the one was answered the other need not buy, a moment later."""
    options = {"columns": COLUMNS, "budget": Epsilon(10), "ledger": tmp_path / "l.ledger", "engine": "memory"}
    with opened(TABLE, **options) as one, opened(TABLE, **options) as other:
        answer = one.count(spend=Epsilon(1))
        until = time.monotonic() + 30
        while verify(tmp_path / "l.ledger").answers == 0 and time.monotonic() < until:
            time.sleep(0.02)
        found = other.count(spend=Epsilon(1))
        assert found.reused
        assert found.value == answer.value
        assert other.spent == Epsilon(1)
    with opened(TABLE, renew=True, **options) as later:  # only its owner can say that a frame is another
        assert not later.count(spend=Epsilon(1)).reused


def test_two_data_sets_of_one_person_space_keep_their_answers_apart_SR12(tmp_path: Path) -> None:
    """The same words about another table of the same people are another question (T56)."""
    options = {"columns": COLUMNS, "budget": Epsilon(10), "ledger": tmp_path / "l.ledger", "engine": "memory"}
    for name in ("a", "b", "a", "b"):
        with opened(TABLE, table=name, **options) as db:
            db.count(spend=Epsilon(1))
            spent = db.spent
    assert spent == Epsilon(2) or spent == Epsilon(3)  # registering b advances the version once


def test_a_lost_answer_is_bought_again_T39() -> None:
    """What was charged and never kept serves nobody: the next ask is charged and answered (T44)."""
    with opened(TABLE, columns=COLUMNS, budget=Epsilon(10), engine="memory") as db:
        receipt = db._ledger.debit(db.foresee(COUNT, spend=Epsilon(1)).event, question="{}", plan_digest="p")
        db._ledger.abandon(receipt)
        assert not db.count(spend=Epsilon(1)).reused
        assert db.spent == Epsilon(2)


def test_a_reused_answer_depends_on_no_row_T39() -> None:
    """Replayed on neighbours, hits and misses fall alike and show the same bytes (T39, protocol RP).

    Control: `test_replay` shows that the harness sees what depends on rows.
    """
    programs = [
        lambda named_asks: named_asks.count(col("age") > 3, spend=Epsilon(0.5)),
        lambda named_asks: named_asks.count(~~(col("age") > 3), spend=Epsilon(0.4)),
        lambda named_asks: named_asks.mean("gain", by="city", spend=Epsilon(0.5)),
        lambda named_asks: named_asks.mean("gain", by="city", spend=Epsilon(0.5)),
        lambda named_asks: named_asks.mean("gain", by="city", spend=Epsilon(0.5), fresh=True),
        lambda named_asks: named_asks.count(col("age") > 3, spend=Epsilon(0.6)),
    ]
    unit = Unit("pid", 2)
    assert replayed("memory", people("HLY"), people("HLYY"), programs, unit) == []


def disguised(text: str, rng: random.Random) -> str:
    """A query in other words: case of letters, remarks, blanks, columns in another order, other names, rows sorted."""
    head, _, tail = split_top(text).removeprefix("SELECT ").partition(f" {SEAM}FROM ")
    columns = [column.rpartition(" AS ")[0] + f" AS other{i}" for i, column in enumerate(head.split(SEAM))]
    rng.shuffle(columns)
    words = re.split(r"( |'[^']*')", f"SELECT {', '.join(columns)} FROM {tail.replace(SEAM, ', ')}")
    made = []
    for before, word in itertools.pairwise(["", *words]):
        if word == " ":
            remarks = (" /* a, b */ ", " -- why\n") if before.endswith((",", ")")) else ()
            made.append(rng.choice((" ", "  ", "\n", *remarks)))
        else:
            made.append(word if word.startswith("'") else rng.choice((str.lower, str.upper))(word))
    return "".join(made) + rng.choice(("", ";", " ORDER BY 1", " ORDER BY 1 DESC LIMIT 1000"))


SEAM = "\x01"


def split_top(text: str) -> str:
    """The text with the commas of its own SELECT list marked, those in no bracket, and the FROM behind them."""
    depth, made, listed = 0, [], True
    for i, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        ends = listed and depth == 0 and text.startswith(" FROM ", i)
        listed = listed and not ends
        made.append(SEAM if sign == "," and depth == 0 and listed else f" {SEAM}" if ends else sign)
    return "".join(made).replace(f"{SEAM} ", SEAM)


@pytest.mark.audit
def test_a_query_in_other_words_is_never_charged_for_nothing_nor_answered_anew_T10() -> None:
    """Random queries over several tables, asked again disguised: the stored answer, free; fresh: charged (T10, SR12).

    Bar: 0 of 1e4 pairs. Control: with another constant the same text is charged.
    """
    pairs = counts.count("pairs of SQL texts, the second disguised", short=50, long=4_000)
    rng = counts.generator("disguised")
    grammar, done = queries.Grammar(rng), 0
    while done < pairs:
        with queries.opened(queries.tables(rng), engine="memory") as db:
            for _ in range(min(pairs - done, 50)):
                text = grammar.query()
                db.sql(text, spend=Epsilon(0.001))
                first = db.sql(text, spend=Epsilon(0.001))
                spent, lines = db.spent, len(db.transcript())
                other = disguised(text, rng)
                again = db.sql(other, spend=Epsilon(0.001))
                assert again.reused, (text, other)
                assert values(again.answers) == values(first.answers)
                assert (db.spent, len(db.transcript())) == (spent, lines)
                done += 1
            fresh = db.sql(other, spend=Epsilon(0.001), fresh=True)
            assert (fresh.reused, len(db.transcript())) == (False, lines + 1)
            changed = "SELECT COUNT(*) FROM people WHERE age < {}"
            assert not db.sql(changed.format(31), spend=Epsilon(0.001)).reused
            assert not db.sql(changed.format(32), spend=Epsilon(0.001)).reused


def test_outside_the_scope_nothing_tells_what_was_asked_T39() -> None:
    """Whoever is outside a scope sees, does and pays the same, whatever was asked inside it at that price (T39).

    Bar: the same plan, price, rows read and noise drawn. Control: inside the scope the two differ.
    """

    def world(inside: Sums, scope: str) -> tuple[object, ...]:
        source = Counted()
        ledger = Ledger.open(None, mechanisms=tuple(MECHANISMS), unit=Unit(), budget=Epsilon(10), synthetic=True)
        rows = Rows(source, ledger.redeem).replace_noise(ledger, source.release)

        def curator(scope: str) -> ReusingOracle:
            return ReusingOracle(Curator(rows, ledger, neighbours.SCHEMA, size=None, versions=(), scope=scope))

        curator("ann").ask(inside, spend=Epsilon(1))
        noises = source.noises
        found = curator(scope).ask(COUNT, spend=Epsilon(0.5), reuse=True)
        return found.reused, found.spent, found.remaining, found.event, found.notes, source.noises - noises

    same, other = COUNT, Sums((Lit(1),), col("age") > 3)
    assert world(same, "bob") == world(other, "bob")
    assert world(same, "ann") != world(other, "ann")


def test_fresh_is_a_truth_value() -> None:
    """A word in place of True is refused, free."""
    with opened(TABLE, columns=COLUMNS, budget=Epsilon(1), engine="memory") as db:
        with pytest.raises(SulqError) as refused:
            db.count(spend=Epsilon(1), fresh="no")
        assert refused.value.code == "bad-question"
        assert db.spent.amount == 0
        assert not isinstance(refused.value, SetupError)
