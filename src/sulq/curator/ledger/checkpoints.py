"""Checkpoints: entries that say what a ledger's history comes to, so that a later opening reads on from the last one.

    totals, budget, split    the kernel's own: it compares them with the entries before, whenever it has read those
    accounts, registered, covers, ...    what a history remembers besides, all of it
    part    debits and answers since the checkpoint before, by what they are looked up by; their entries say the rest
    before    that checkpoint's place and hash: whoever vouches for the last one vouches for the parts of all

A history that has read the entries before a checkpoint writes the same text itself, or refuses it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sulq.kernel.ledger.chain import Row, link
from sulq.kernel.ledger.store import END, Store, damaged

FORMAT: Final = 1
EVERY: Final = 1000  # entries between two checkpoints
MAX_SEARCHED_ENTRIES: Final = 4 * EVERY  # how far before the last entry a checkpoint is looked for
START: Final = '{"accounts":'  # of a checkpoint's text, and of no other entry's
MARKED: Final = f"substr(body, 1, {len(START)}) = '{START}'"
NAME_BYTES: Final = 16  # of a digest of what a debit is looked up by


class DebitKind(NamedTuple):
    """Whose a debit was, and what tells the strongest of several answers: version and cost."""

    analyst: str
    dataset: str
    version: int
    epsilon: Fraction | None
    rho: Fraction


def name_of(*words: str) -> bytes:
    """What a debit is looked up by: a digest, which nobody finds another text for."""
    text = "".join(f"{len(word)}:{word}" for word in words)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:NAME_BYTES]


def part_of(
    debits: Mapping[int, tuple[DebitKind, str]], keys: Mapping[tuple[str, str], int], answers: Mapping[int, int]
) -> dict[str, object]:
    """The debits of one part, each with what names its question; their keys, and all answers, by debit."""
    kinds = {kind: place for place, kind in enumerate(dict.fromkeys(kind for kind, _ in debits.values()))}
    return {
        "seqs": [*debits],
        "asked": b"".join(name_of(asked) for _, asked in debits.values()).hex(),
        "kind": [kinds[kind] for kind, _ in debits.values()],
        "kinds": [*map(_raw, kinds)],
        "keys": [[name_of(*name).hex(), seq] for name, seq in keys.items()],
        "answers": [[of, at] for of, at in answers.items()],
    }


def _raw(kind: DebitKind) -> tuple[Any, ...]:
    """A kind of debits, to be written."""
    return (*kind[:3], None if kind.epsilon is None else str(kind.epsilon), str(kind.rho))


@dataclass(frozen=True, slots=True)
class Index:
    """The debits before a checkpoint, in order; never changed, so that any thread may look at it."""

    seqs: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    names: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 2), np.uint64))
    place: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # in `kinds`
    kinds: tuple[DebitKind, ...] = ()
    keys: Mapping[bytes, int] = field(default_factory=dict)
    answers: Mapping[int, int] = field(default_factory=dict)

    def extended(self, parts: Sequence[Mapping[str, Any]]) -> Index:
        """With the debits of further parts, in order."""
        kinds = {_raw(kind): place for place, kind in enumerate(self.kinds)}
        seqs, names, places = [self.seqs], [self.names], [self.place]
        keys, answers = dict(self.keys), dict(self.answers)
        for part in parts:
            own = [kinds.setdefault(tuple(raw), len(kinds)) for raw in part["kinds"]]
            seqs.append(np.array(part["seqs"], np.int64))
            names.append(np.frombuffer(bytes.fromhex(part["asked"]), "<u8").reshape(-1, 2))
            places.append(np.array(own, np.int64)[np.array(part["kind"], np.int64)])
            keys.update((bytes.fromhex(name), seq) for name, seq in part["keys"])
            answers.update(part["answers"])
        stacked = np.concatenate(seqs), np.concatenate(names), np.concatenate(places)
        new = (
            DebitKind(who, dataset, version, None if epsilon is None else Fraction(epsilon), Fraction(rho))
            for who, dataset, version, epsilon, rho in [*kinds][len(self.kinds) :]
        )
        return Index(*stacked, (*self.kinds, *new), keys, answers)

    def __contains__(self, seq: int) -> bool:
        place = int(np.searchsorted(self.seqs, seq))
        return place < self.seqs.size and int(self.seqs[place]) == seq

    def asked(self, asked: str) -> Iterator[tuple[int, DebitKind]]:
        """The debits that a question was asked by."""
        first, second = np.frombuffer(name_of(asked), "<u8")
        found = np.flatnonzero(self.names[:, 0] == first)
        yield from self._at(found[self.names[found, 1] == second])

    def debits(self, after: int, wanted: Callable[[DebitKind], bool]) -> Iterator[int]:
        """The debits of kinds that are wanted after a place; of each kind that is asked once."""
        kinds = np.array([wanted(kind) for kind in self.kinds], np.bool_)
        first = int(np.searchsorted(self.seqs, after, "right"))
        yield from map(int, self.seqs[first:][kinds[self.place[first:]]])

    def key(self, analyst: str, key: str) -> int | None:
        """The debit that an idempotency key was used for."""
        return self.keys.get(name_of(analyst, key)) if self.keys else None

    def _at(self, places: Iterable[int]) -> Iterator[tuple[int, DebitKind]]:
        return ((int(self.seqs[place]), self.kinds[self.place[place]]) for place in places)


class CheckpointFound(NamedTuple):
    """A checkpoint in a store, with what a state begins at it by; `parts` are those of all checkpoints up to it."""

    first: Row
    previous: Row
    row: Row
    body: dict[str, Any]
    parts: list[dict[str, Any]]


def find(store: Store, last: int = END, *, parts: bool = True) -> CheckpointFound | None:
    """The last checkpoint up to a place; None where there is none near: then the ledger is read from its first entry.

    Raises:
        SetupError: `ledger-damaged`: it is not chained to the entry before it, or a checkpoint before is another one.
    """
    head = store.head()
    last = min(last, END if head is None else head[0])
    places = f"seq > {max(last - MAX_SEARCHED_ENTRIES, 1)} AND seq <= {last}"
    ((seq,),) = store.ask(f"SELECT max(seq) FROM {{0}}.entries WHERE {places} AND {MARKED}")  # noqa: S608 - constants
    first = store.row(1)
    if seq is None or first is None:
        return None
    before, row, body = _checked(store, int(seq), None)
    gathered, place = [body["part"]], body["before"]
    while parts and place is not None:
        *_, earlier = _checked(store, *place)
        gathered.append(earlier["part"])
        place = earlier["before"]
    return CheckpointFound(first, before, row, body, gathered[::-1])


def _checked(store: Store, seq: int, known: str | None) -> tuple[Row, Row, dict[str, Any]]:
    """A checkpoint, the entry before it, and what it says, if it is chained to it and is the one that is known."""
    rows = [*store.rows(seq - 2, seq)]
    if [row.seq for row in rows] != [seq - 1, seq]:
        raise damaged(f"entry {seq}", "is missing")
    before, row = rows
    if link(before.hash, seq, row.body) != row.hash or known not in (None, row.hash.hex()):
        raise damaged(f"entry {seq}", "is not the checkpoint that was written")
    return before, row, json.loads(row.body)
