"""The transcript prints as a small table, and is a list of dictionaries all the same."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

import sulq
from sulq import Epsilon, Unit
from sulq.answers import wire
from sulq.api.transcript import TranscriptList
from sulq.language.privacy import Event
from sulq.language.question import Sums
from sulq.language.rowfn import Col, Lit


def test_it_is_a_list_that_prints_as_a_table() -> None:
    """Entry, time, question in words and price; without analysts no column for them."""
    with sulq.connect(
        pa.table({"city": ["Lod"]}), table="t", columns={"city": ["Lod", "Yafo"]}, unit=Unit(), budget=Epsilon(9)
    ) as db:
        assert repr(db.transcript()) == "no asks yet"
        db.count(by="city", spend=Epsilon(0.5))
        found = db.transcript()
        assert isinstance(found, list)
        assert found == [dict(found[0])]
        assert {"seq", "time", "question", "event", "answer"} <= set(found[0])
        head, line = repr(found).splitlines()
        assert head.split() == ["entry", "time", "question", "price"]
        assert line.endswith("count by city  epsilon 0.5")
        assert "<td>count by city</td>" in found._repr_html_()


def test_what_a_service_tells_is_read_too() -> None:
    """Questions as text or tree, events as trees, analysts; what cannot be read is shown as little as it says."""
    count = Sums((Lit(1),), None, (Col("<city>"),))
    asked = wire.encode(count)
    three = wire.to_json(Event(None, Fraction(0), queries=3))
    lines = TranscriptList(
        [
            {"seq": 1, "time": "2026-01-02T03:04:05.678", "analyst": "ada", "question": asked, "event": three},
            {"seq": 2, "time": None, "analyst": None, "question": "{", "event": {"kind": "?"}},
        ]
    )
    head, first, second = repr(lines).splitlines()
    assert head.split()[2] == "analyst"
    assert first.split() == ["1", "2026-01-02", "03:04:05", "ada", "count", "by", "<city>", "3", "queries"]
    assert second.split() == ["2", "a", "question"]
    assert "<city>" not in lines._repr_html_()


def test_the_last_asks_are_shown_and_earlier_ones_counted() -> None:
    """Twenty of them; a list of one more says so."""
    lines = TranscriptList([{"seq": i, "question": "{", "event": None} for i in range(21)])
    told = repr(lines).splitlines()
    assert told[0] == "1 earlier ask is not shown"
    assert (len(told), told[-1].split()[0]) == (22, "20")
    assert "not shown" not in repr(TranscriptList(lines[1:]))
