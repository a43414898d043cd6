"""Certificates are remembered for whoever asked, and nobody learns from their time what others asked (T39)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sulq.kernel import remembered as module
from sulq.kernel.facts import Column, Facts, Refused, Table
from sulq.kernel.relations import certify
from sulq.kernel.remembered import ASKERS, TEXTS, asked_by, remembered

FACTS = Facts(
    (Table(("kept",), (("c0", Column("BIGINT", 0, 9)),), 1, owned=False, size=100),), "add_remove", row_is_person=True
)


def text(number: int) -> str:
    return f"SELECT CAST(sum(c0 + {number}) AS BIGINT) FROM kept"


WORKED: list[str] = []


def counted(sql: str, facts: Facts) -> object:
    """The certificate of a statement, which is noted."""
    WORKED.append(sql)
    return certify(sql, facts)


@pytest.fixture
def worked() -> Iterator[list[str]]:
    """The statements that were certified anew."""
    WORKED.clear()
    module._known.cache_clear()
    yield WORKED
    module._known.cache_clear()


def test_a_text_that_another_asked_is_certified_anew_T39(worked: list[str]) -> None:
    """Each asker's certificates are its own. Control: its own text is known to it, and facts are part of the key."""
    for name in ("alice", "bob", "alice", "bob"):
        with asked_by(name):
            found = remembered(counted, text(1), FACTS)
        assert found == certify(text(1), FACTS)
    assert worked == [text(1)] * 2
    with asked_by("alice"):
        remembered(counted, text(1), Facts(FACTS.tables, "replace_one", row_is_person=True))
        with asked_by("bob"):
            remembered(counted, text(1), FACTS)
        remembered(counted, text(1), FACTS)
    assert len(worked) == 3
    remembered(counted, text(1), FACTS)  # nobody's in particular
    assert len(worked) == 4


def test_a_refusal_is_not_remembered(worked: list[str]) -> None:
    """It takes as long the second time."""
    for _ in range(2):
        with pytest.raises(Refused), asked_by("alice"):
            remembered(counted, "SELECT c0 FROM kept LIMIT 1", FACTS)
    assert len(worked) == 2


def test_few_askers_and_few_texts_are_kept(worked: list[str]) -> None:
    """Whoever asks much forgets its own texts first; of many askers the one that was quiet longest is forgotten."""
    with asked_by("bob"):
        remembered(counted, text(0), FACTS)
    with asked_by("alice"):
        for number in range(TEXTS + 1):
            remembered(counted, text(number), FACTS)
        worked.clear()
        remembered(counted, text(0), FACTS)
    assert worked == [text(0)]
    with asked_by("bob"):
        remembered(counted, text(0), FACTS)
    assert len(worked) == 1
    for number in range(ASKERS):
        with asked_by(f"another {number}"):
            remembered(counted, text(0), FACTS)
    assert module._known.cache_info().currsize == ASKERS
    worked.clear()
    with asked_by("another 0"):
        remembered(counted, text(0), FACTS)
    assert worked == []
    with asked_by("bob"):
        remembered(counted, text(0), FACTS)
    assert worked == [text(0)]
