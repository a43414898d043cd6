"""The transcript as Python has it: a list of dictionaries that prints as a small table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sulq.answers.question_words import asked, read_value
from sulq.display import tables
from sulq.display.numbers import plain
from sulq.language.privacy import Event

HEAD: Final = ("entry", "time", "analyst", "question", "price")
ANALYST: Final = HEAD.index("analyst")


class TranscriptList(list[dict[str, object]]):
    """Asks in order, each a dictionary as the ledger tells it; printed, the last of them as a table."""

    def table(self, limit: int = tables.MAX_ROWS) -> list[tuple[str, ...]]:
        """The last asks under their head: entry, time, analyst where one is named, question in words, price."""
        rows = [HEAD, *(_row(line) for line in self[max(len(self) - limit, 0) :])]
        named = any(row[ANALYST] for row in rows[1:])
        return rows if named else [row[:ANALYST] + row[ANALYST + 1 :] for row in rows]

    def _earlier(self) -> str:
        earlier = len(self) - tables.MAX_ROWS
        return f"{earlier:,} earlier {'ask is' if earlier == 1 else 'asks are'} not shown" if earlier > 0 else ""

    def __repr__(self) -> str:
        head, *rows = self.table()
        return "\n".join(filter(None, [self._earlier(), tables.text(head, rows)])) if self else "no asks yet"

    def _repr_html_(self) -> str:
        head, *rows = self.table()
        return tables.as_html(head, rows, self._earlier())


def _row(line: Mapping[str, object]) -> tuple[str, ...]:
    event = read_value(line.get("event"))
    time = str(line.get("time") or "")[:19].replace("T", " ")
    price = _price(event) if isinstance(event, Event) else ""
    return str(line.get("seq")), time, str(line.get("analyst") or ""), asked(read_value(line.get("question"))), price


def _price(event: Event) -> str:
    if event.queries:
        return f"{event.queries:,} {'query' if event.queries == 1 else 'queries'}"
    if event.epsilon is not None:
        return f"epsilon {plain(float(event.epsilon))}"
    keys = f", delta {plain(float(event.key_delta))}" if event.key_delta else ""
    return f"rho {plain(float(event.rho))}{keys}"
