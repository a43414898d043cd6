"""Checkpoints: a ledger opened at one is the ledger that was read whole, and a wrong one is noticed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sulq.answers import wire
from sulq.curator.ledger import checkpoints, full_check, history, notes
from sulq.curator.ledger.full_check import FullCheck
from sulq.curator.ledger.history import begun, load, of
from sulq.curator.ledger.ledger import Ledger, reconcile
from sulq.curator.ledger.opening import cover_of, look, place_of, report, verify
from sulq.curator.ledger.postgres_place import Address, PostgresPlace
from sulq.curator.ledger.postgres_place import told as told_in
from sulq.curator.ledger.shares import Share
from sulq.curator.ledger.sources import Source, told
from sulq.errors import SetupError, SulqError
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.kernel.ledger.entries import Draft, State
from sulq.kernel.ledger.filter import Totals
from sulq.language.privacy import Epsilon, EpsilonDelta
from tests import counts
from tests.curator.ledger.cases import MECHANISMS, ask, gaussian, memory_folder, opened, pure
from tests.curator.ledger.places import STORES, Place, create, empty, removed, store_at

EVERY = 7
Bodies = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a checkpoint every few entries."""
    monkeypatch.setattr(checkpoints, "EVERY", EVERY)


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with empty(request.param) as found:
        yield found


@pytest.fixture
def anchor() -> Iterator[Path]:
    with memory_folder() as folder:
        yield folder / "a.anchor"


def lived(ledger: Ledger, number: int, seed: int = 1) -> None:
    """A ledger's life: debits of several analysts, keys, answers at once, late or never, shares, raises, data."""
    draw = counts.generator(seed)
    late = []
    for each in range(number):
        analyst, question = draw.choice(["", "ann", "ben"]), f"q{draw.randrange(8)}"
        key = f"{seed}-{each}" if draw.random() < 0.3 else None
        event = gaussian("0.0001") if draw.random() < 0.2 else pure(draw.choice(["0.001", "0.002"]))
        receipt = ledger.debit(event, question=question, plan_digest="p", key=key, analyst=analyst, dataset="d")
        if draw.random() < 0.7:
            ledger.keep(receipt, f'"answer {each}"')
        else:
            late.append(receipt)
        if draw.random() < 0.3 and late:
            ledger.keep(late.pop(0), '"late"')
        if draw.random() < 0.1:
            ledger.share(analyst or "ann", Share.of(draw.choice(["0.5", "1"]), draw.choice(["0", "0.01"])))
        if draw.random() < 0.1:
            ledger.raise_to(EpsilonDelta(ledger.budget.epsilon + 1, 1e-6))
        if draw.random() < 0.2:
            ledger.register(f"t{draw.randrange(3)}", declarations=f"{each}", public=draw.random() < 0.5)
            ledger.cover([Source("spark", f"s{each}")])


def reopened(place: Place, **options: object) -> Ledger:
    """Open a ledger as it is."""
    return Ledger.open(place, mechanisms=MECHANISMS, **options)


def begin(place: Place, **options: object) -> Ledger:
    return opened(place, EpsilonDelta(10, 1e-6), **options)


def remembered(state: State) -> dict[str, object]:
    """All that a history says, wherever it was read from."""
    found = of(state)
    said = {name: getattr(found, name) for name in ("version", "anchor", "choice", "covers", "settled", "checkpoint")}
    said |= {"registered": found.registered, "declarations": found.declarations, "accounts": found.accounts}
    debits = [*found.debits_after(0, lambda _: True)]
    said |= {"debits": debits, "answers": {seq: found.answer_of(seq) for seq in debits}, "report": report(state)}
    said |= {"of": {who: [*found.debits_after(9, lambda kind, who=who: kind.analyst == who)] for who in ("", "ann")}}
    said |= {"asked": {name: found.asked_by(name) for name in (digest(f"q{i}") for i in range(9))}}
    return said | {"keys": {(who, f"1-{i}"): found.key(who, f"1-{i}") for who in ("", "ann", "ben") for i in range(60)}}


def digest(question: str) -> str:
    return wire.digest_of(question)


def rewritten(place: Place, change: Callable[[Bodies], None]) -> None:
    """Change what the entries of a ledger say and chain all of them anew, as whoever may write the file can."""
    store = store_at(place)
    bodies = [json.loads(row.body) for row in store.rows()]
    store.close()
    change(bodies)
    rows: list[Row] = []
    previous: tuple[int, str] | None = None
    for seq, body in enumerate(bodies, start=1):
        if body["kind"] == "checkpoint":  # a careful forger points at the checkpoints as they are now
            body["before"] = previous
        rows.append(Row(seq, canonical(body), link(rows[-1].hash if rows else ORIGIN, seq, canonical(body))))
        if body["kind"] == "checkpoint":
            previous = seq, rows[-1].hash.hex()
    removed(place)
    create(place, rows)


def last_of(bodies: Bodies) -> dict[str, Any]:
    return next(body for body in reversed(bodies) if body["kind"] == "checkpoint")


def test_a_ledger_opened_at_a_checkpoint_is_the_one_read_whole_T47(place: Place) -> None:
    """Opened at each of its checkpoints and read on, a ledger says what it says read from its first entry."""
    with begin(place) as ledger:
        lived(ledger, 60)
        places = [row.seq for row in ledger._store.rows() if json.loads(row.body)["kind"] == "checkpoint"]
    assert len(places) >= 10
    store = look(place_of(place), 5.0)
    whole = remembered(load(store, MECHANISMS, thorough=True))
    for last in (*places, 10**6):
        state = begun(store, MECHANISMS, last)
        assert (state.seq, state.whole) == (min(last, places[-1]), False)
        state.catch_up(store)
        assert remembered(state) == whole
    state = begun(store, MECHANISMS, places[0] - 1)
    assert (state.seq, state.whole) == (0, True)
    store.close()


def test_what_was_asked_before_a_checkpoint_is_found_again_T44(place: Place) -> None:
    """Keys, free re-answers, receipts, transcripts and late answers reach back behind the checkpoint."""
    with begin(place) as ledger:
        keyed = ask(ledger, pure("0.01"), "keyed", key="k")
        ledger.keep(keyed, '"kept"')
        lost = ask(ledger, pure("0.01"), "lost", key="lost")
        open_ = ask(ledger, pure("0.01"), "open")
        lived(ledger, 20)
        ledger.keep(open_, '"at last"')  # while its debit is no longer in memory
        assert open_.seq not in ledger._history.charges
        lines = ledger.transcript()
    with reopened(place) as ledger:
        assert not ledger._writer.state.whole
        assert ledger.transcript() == lines
        assert [line.seq for line in ledger.transcript(analyst="ann", limit=3)] == [
            line.seq for line in lines if line.analyst == "ann"
        ][:3]
        again = ask(ledger, pure("0.01"), "keyed", key="k")
        assert (again.seq, again.stored) == (keyed.seq, '"kept"')
        for question, code in (("another", "key-reused"), ("lost", "answer-lost")):
            with pytest.raises(SulqError) as refusal:
                ask(ledger, pure("0.01"), question, key="k" if question == "another" else "lost")
            assert refusal.value.code == code
        ledger._version = 0  # what was registered since made other data of it
        kept = ledger.kept(digest("open"))
        assert [(line.seq, line.answer) for line in kept] == [(open_.seq, '"at last"')]
        assert (ledger.again(kept[0]).seq, ledger.times(digest("open"))) == (open_.seq, 1)
        assert lost.seq in {line.seq for line in lines}
        assert json.loads(ledger.receipt(lost.seq))["seq"] == lost.seq
        ledger.verify()
    with reopened(place) as ledger, reopened(place) as other:
        lived(other, 10, 2)  # another process's checkpoints are compared as they are read
        assert ledger.totals == other.totals


def test_an_old_ledger_gets_checkpoints_as_it_grows_T91(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger of before has none: it is read whole, gets its first with the next entry, and is opened at it."""
    monkeypatch.setattr(checkpoints, "EVERY", 10**9)
    with begin(place) as ledger:
        lived(ledger, 30)
    monkeypatch.setattr(checkpoints, "EVERY", EVERY)
    with reopened(place) as ledger:
        assert ledger._writer.state.whole
        ask(ledger, pure("0.001"))
        spent = ledger.totals
    with reopened(place) as ledger:
        assert not ledger._writer.state.whole
        assert ledger.totals == spent
    assert verify(place).totals == spent


def test_covers_are_found_at_a_checkpoint_T98(place: Place) -> None:
    """Which data a ledger covers is read from its last checkpoint on, on either store."""
    with begin(place) as ledger:
        lived(ledger, 40)
        covers = ledger.book.covers
    assert covers
    store = look(place_of(place), 5.0)
    rows = told(store)
    assert cover_of("x", rows).covers == covers
    assert [json.loads(row.body)["kind"] for row in rows][:2] == ["genesis", "checkpoint"]
    if isinstance(store, PostgresPlace):
        assert told_in(store, Address.of(str(place)).ledger) == rows
    store.close()


def less(bodies: Bodies) -> None:
    """Halve the totals of the last checkpoint, of all and of each analyst."""
    said = last_of(bodies)
    for totals in (said["totals"], *said["accounts"]["spent"].values()):
        totals.update({name: value // 2 for name, value in totals.items() if type(value) is int})


def other_shares(bodies: Bodies) -> None:
    last_of(bodies)["accounts"]["shares"]["ann"] = ["1", "1"]


def larger(bodies: Bodies) -> None:
    last_of(bodies)["budget"]["epsilon"] = 10**6


def forgotten_keys(bodies: Bodies) -> None:
    for body in bodies:
        if body["kind"] == "checkpoint":
            body["part"]["keys"] = []


def replayed(bodies: Bodies) -> None:
    """Put what an older checkpoint says in place of the last one."""
    found = [body for body in bodies if body["kind"] == "checkpoint"]
    found[-1].update(json.loads(json.dumps(found[1])))


def from_another(bodies: Bodies) -> None:
    """Put what a checkpoint of another ledger says in place of the last one."""
    with memory_folder() as folder:
        with begin(folder / "b.ledger") as other:
            lived(other, 20, 3)
        store = store_at(folder / "b.ledger")
        said = last_of([json.loads(row.body) for row in store.rows()])
        store.close()
    last_of(bodies).update(said)


SKILFUL = (less, forgotten_keys)  # what comes after the checkpoint agrees with these
FORGERIES = (less, other_shares, larger, forgotten_keys, replayed, from_another)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_checkpoint_is_noticed_by_whoever_reads_what_stands_before_it_T47(
    place: Place, forgery: Callable[[Bodies], None]
) -> None:
    """Chained anew without an anchor it opens, as any rewritten history does; read whole, and aside, it is refused."""
    with begin(place) as ledger:
        lived(ledger, 40)
    rewritten(place, lambda _: None)
    verify(place)  # the control: what was rewritten as it was verifies
    rewritten(place, forgery)
    for act in (lambda: verify(place), lambda: reopened(place, whole=True), lambda: reread(place)):
        with pytest.raises(SetupError) as refusal:
            act()
        assert refusal.value.code == "ledger-damaged"


def reread(place: Place) -> None:
    """Open it at its last checkpoint, and read what stands before."""
    store = look(place_of(place), 5.0)
    found = checkpoints.find(store)
    store.close()
    assert found is not None
    check = FullCheck(place_of(place), MECHANISMS, (found.row.seq, found.row.hash.hex()), lambda _: None)
    check.stop()
    check._stopped.clear()
    check.check()


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_checkpoint_is_noticed_by_the_anchor_T46(
    place: Place, anchor: Path, forgery: Callable[[Bodies], None]
) -> None:
    """The entry that the anchor noted is chained to the checkpoint: forged and chained anew it is another entry."""
    with begin(place, anchor=anchor) as ledger:
        lived(ledger, 40)
    with reopened(place, anchor=anchor) as ledger:
        assert not ledger._writer.state.whole
    rewritten(place, lambda _: None)
    reopened(place, anchor=anchor).close()
    rewritten(place, forgery)
    with pytest.raises(SetupError) as refusal:
        reopened(place, anchor=anchor)
    assert refusal.value.code in {"ledger-rolled-back", "ledger-damaged"}
    if forgery in SKILFUL:
        reopened(place).close()  # the control: without the anchor it opens, and takes no debit


def test_a_checkpoint_after_the_anchors_entry_is_not_taken_at_its_word_T46(place: Place, anchor: Path) -> None:
    """A forger who only adds: a checkpoint after the noted entry that says less is read, and refused."""
    with begin(place, anchor=anchor) as ledger:
        lived(ledger, 40)
        noted = json.loads(anchor.read_bytes())["seq"]

    def added(bodies: Bodies) -> None:
        del bodies[noted:]
        said = json.loads(json.dumps(last_of(bodies)))
        bodies += [said, {"kind": "answer", "of": 2, "answer": "", "time": ""}]
        less(bodies)

    rewritten(place, added)
    with pytest.raises(SetupError) as refusal:
        reopened(place, anchor=anchor)
    assert refusal.value.code == "ledger-damaged"


def test_a_burn_that_charges_nothing_settles_no_anchor_T46(place: Place, anchor: Path) -> None:
    """A forger who cuts the history and says that what the anchor noted was burnt: the totals are less, and refused."""
    with begin(place, anchor=anchor) as ledger:
        lived(ledger, 20)
        noted = json.loads(anchor.read_bytes())

    def cut(bodies: Bodies) -> None:
        del bodies[len(bodies) // 2 :]
        bodies.append(json.loads(notes.burnt({}, name=noted["name"], settles=noted["hash"], time="t")))

    rewritten(place, cut)
    with pytest.raises(SetupError) as refusal:
        reopened(place, anchor=anchor)
    assert refusal.value.code == "ledger-rolled-back"


def test_a_ledger_behind_its_anchor_is_burnt_from_what_all_entries_say_T46(place: Place, anchor: Path) -> None:
    """Reconciling reads the ledger whole, whatever its checkpoint says, and the next opening agrees."""
    with begin(place, anchor=anchor) as ledger:
        lived(ledger, 40)
        spent = ledger.totals

    def cut(bodies: Bodies) -> None:
        del bodies[-5:]

    rewritten(place, cut)
    with pytest.raises(SetupError) as refusal:
        reopened(place, anchor=anchor)
    assert refusal.value.code == "ledger-rolled-back"
    reconcile(place, anchor, mechanisms=MECHANISMS)
    with reopened(place, anchor=anchor) as ledger:
        assert ledger.totals.epsilon >= spent.epsilon
        lived(ledger, 10, 5)
    with reopened(place, anchor=anchor) as ledger:
        assert not ledger._writer.state.whole
        ledger.verify()


def test_what_is_not_chained_is_no_checkpoint_T47(place: Place) -> None:
    """Without chaining anew any forgery is found as the ledger is opened, in the last checkpoint or an earlier one."""
    with begin(place) as ledger:
        lived(ledger, 40)
    store = store_at(place)
    rows = [*store.rows()]
    store.close()
    marked = [at for at, row in enumerate(rows) if row.body.startswith(checkpoints.START)]
    for at in (marked[-1], marked[0]):
        changed = rows[at]._replace(body=rows[at].body.replace('"debits"', '"debit"').replace('"seqs":[', '"seqs":[1,'))
        assert changed != rows[at]
        removed(place)
        create(place, [*rows[:at], changed, *rows[at + 1 :]])
        with pytest.raises(SetupError) as refusal:
            reopened(place)
        assert refusal.value.code == "ledger-damaged"


def unreadable(bodies: Bodies) -> None:
    """As `less`, and an entry that nobody can read."""
    less(bodies)
    next(body for body in bodies if body["kind"] == "debit")["rho"] = [1]


@pytest.mark.parametrize("forged", [less, unreadable])
def test_what_is_found_aside_stops_the_ledger_T48(
    place: Place, forged: Callable[[Bodies], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that opened at a forged checkpoint takes no debit once the entries before it were read, or cannot be."""
    monkeypatch.setattr(full_check, "DELAY_SECONDS", 0.01)
    with begin(place) as ledger:
        lived(ledger, 30)
    with reopened(place) as ledger:
        ledger._check._thread.join()
        ask(ledger, pure("0.001"))  # the control: nothing is wrong with it
    rewritten(place, forged)
    ledger = reopened(place)
    deadline = time.monotonic() + 30
    while ledger.usable and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(SetupError) as refusal:
        ask(ledger, pure("0.001"))
    assert refusal.value.code == "ledger-damaged"
    ledger.close()


@pytest.mark.parametrize("code", ["missing-file", "ledger-failed", "ledger-busy"])
def test_a_place_that_cannot_be_read_aside_for_a_while_stops_nothing(
    code: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read later. Control: a forged history, above, stops the ledger."""
    monkeypatch.setattr(full_check, "DELAY_SECONDS", 0.01)
    real, tries = full_check.look, []

    def look(*given: object) -> object:
        tries.append(code)
        if len(tries) < 3:
            raise SetupError(code, "No.")
        return real(*given)

    with begin(place) as ledger:
        lived(ledger, 30)
    monkeypatch.setattr(full_check, "look", look)
    with reopened(place) as ledger:
        ledger._check._thread.join(30)
        assert (len(tries), ledger.usable) == (3, True)
        ask(ledger, pure("0.001"))


@pytest.mark.parametrize("said", [{"totals": Totals(1)}, {"budget": Epsilon(2)}, {"totals": None}])
def test_the_kernel_writes_no_checkpoint_that_is_wrong_T52(said: dict[str, object]) -> None:
    """A deceiver: what is proposed as a checkpoint is compared with the draft's own totals and budget."""
    with opened(None) as ledger:
        ask(ledger, pure("0.1"))
        right = json.loads(of(ledger._writer.state).told(ledger._writer.state))
        wrong = dict(right)
        if "budget" in said:
            wrong |= notes.divided_tree(said["budget"], None)
        else:
            wrong["totals"] = said["totals"] and notes.tree_of(said["totals"])

        def propose(body: object) -> Callable[[Draft], object]:
            return lambda draft: draft.note(canonical(body))

        before = ledger.head
        with pytest.raises(SetupError):
            ledger._writer.transact(propose(wrong))
        Draft(ledger._writer.state).note(canonical(right))
        with pytest.raises(SetupError):  # by the kernel itself, whoever follows the entries
            Draft(ledger._writer.state).note(canonical(wrong))
    with opened(None) as ledger:
        assert before
        ask(ledger, pure("0.1"))
        right = of(ledger._writer.state).told(ledger._writer.state)
        ledger._writer.transact(propose(json.loads(right)))  # the control
        assert ledger.verify().entries == 3


def test_memory_holds_the_debits_since_the_last_checkpoint_alone() -> None:
    """However long a process asks, what it remembers of each debit is a line of an index."""
    with opened(None, Epsilon(100)) as ledger:
        for number in range(60):
            ask(ledger, pure("0.01"), f"{number}")
            assert len(ledger._history.charges) <= EVERY + 1
        assert len(ledger.transcript()) == 60
        assert history.of(ledger._writer.state).debits == 60
