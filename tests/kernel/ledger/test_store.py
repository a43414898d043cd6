"""What every store does alike: whole or not at all, one order, one state to read from, and nothing of two at once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from sulq.curator.ledger.postgres_place import PostgresPlace
from sulq.curator.ledger.turns import SharedWriter, SqliteFile
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.kernel.ledger.postgres import PostgresStore
from sulq.kernel.ledger.sqlite import SqliteStore
from sulq.kernel.ledger.store import Behind, Store
from sulq.kernel.ledger.writer import Writer
from tests.curator.ledger.places import STORES, Place, create, empty, store_at


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with empty(request.param) as found:
        yield found


def chained(number: int, after: tuple[int, bytes] = (0, ORIGIN), text: str = "e") -> list[Row]:
    """So many entries on top of a head."""
    rows = []
    seq, last = after
    for _ in range(number):
        seq += 1
        body = canonical({"text": text, "n": seq})
        last = link(last, seq, body)
        rows.append(Row(seq, body, last))
    return rows


def add(store: Store, number: int, text: str = "e") -> list[Row]:
    """Append on top of what is there, as the writer does."""
    store.begin()
    head = store.head()
    assert head is not None
    rows = chained(number, head, text)
    store.append(rows)
    store.commit()
    return rows


def test_what_is_committed_is_read_back(place: Place) -> None:
    """Rows, single rows and the head are as they were written, for this connection and for others, to the byte."""
    first = chained(1, text="quotes ' \" \\ and {braces}, % and 中文")
    create(place, first)
    one, two = store_at(place), store_at(place)
    more = [*first, *add(one, 1), *add(one, 3), *add(two, 2)]
    for store in (one, two):
        assert list(store.rows()) == more
        assert list(store.rows(4)) == more[4:]
        assert [store.row(seq) for seq in (1, 7, 8)] == [more[0], more[6], None]
        assert store.head() == (7, more[-1].hash)
        assert store.sound()
        assert not store.readonly
        store.close()


def test_what_is_outside_adds_to_the_kernels_classes_and_overrides_nothing() -> None:
    """Files, places and shared transactions are the kernel's, but for connecting and waiting, which it asks for."""
    hooks = {"_dial", "_enter", "_leave", "_busy", "_abc_impl"}
    for outside, kernel in ((SqliteFile, SqliteStore), (PostgresPlace, PostgresStore), (SharedWriter, Writer)):
        assert outside.__bases__ == (kernel,)
        names = {name for name in vars(outside) if not name.startswith("__")}
        assert {name for name in names if hasattr(kernel, name)} <= hooks


def test_what_is_rolled_back_was_never_there(place: Place) -> None:
    """A transaction given up leaves nothing behind, and the next one works."""
    create(place, chained(1))
    store = store_at(place)
    store.begin()
    assert store.head() == (1, chained(1)[0].hash)
    store.append(chained(3, (1, chained(1)[0].hash)))
    store.rollback()
    assert list(store.rows()) == chained(1)
    add(store, 2)
    assert len(list(store.rows())) == 3
    store.close()


def test_while_deciding_entries_past_the_head_are_left_for_next_time(place: Place) -> None:
    """What another server adds between the head and the rows is not taken for damage."""
    create(place, chained(1))
    one, two = store_at(place), store_at(place)
    one.begin()
    head = one.head()
    if isinstance(place, str):  # a file is locked meanwhile
        add(two, 2)
    assert head is not None
    assert len(list(one.rows())) == head[0] == 1
    one.rollback()
    one.close()
    two.close()


def test_of_two_that_decide_at_once_one_is_written_T42(place: Place) -> None:
    """Appends from many threads, each on its own connection, end in one unbroken chain with every one in it (T42)."""
    create(place, chained(1))
    written: list[Row] = []

    def work(number: int) -> None:
        store = store_at(place, wait=60.0)
        done = 0
        while done < 10:
            try:
                written.extend(add(store, 1 + done % 2, f"{number}-{done}"))
                done += 1
            except Behind:
                store.rollback()
        store.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = store_at(place)
    found = list(store.rows())
    store.close()
    assert found[1:] == sorted(written)
    assert len(found) == 1 + 6 * 15
    assert all(link(a.hash, b.seq, b.body) == b.hash for a, b in itertools.pairwise(found))


def test_a_ledger_is_begun_once(place: Place) -> None:
    """Of several who begin a ledger at the same place one does; the others touch nothing."""
    outcomes: list[str] = []
    gate = threading.Barrier(4)

    def work(number: int) -> None:
        gate.wait()
        try:
            create(place, chained(1, text=str(number)))
            outcomes.append(str(number))
        except FileExistsError:
            pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = store_at(place)
    assert len(outcomes) == 1
    assert list(store.rows()) == chained(1, text=outcomes[0])
    assert store.sound()
    store.close()
