"""The hash chain."""

from __future__ import annotations

import hashlib

import pytest

from sulq.kernel.ledger.chain import ORIGIN, canonical, link


def test_a_link_covers_what_came_before_the_place_and_the_text() -> None:
    """Changing any of the three changes the hash; it is SHA-256 of them one after the other (T47)."""
    first = link(ORIGIN, 1, "a")
    assert first == hashlib.sha256(bytes(32) + (1).to_bytes(8, "big") + b"a").digest()
    assert len({first, link(first, 1, "a"), link(ORIGIN, 2, "a"), link(ORIGIN, 1, "b")}) == 4


def test_equal_bodies_have_equal_bytes() -> None:
    """Order of fields does not matter, and what is not JSON is refused."""
    assert canonical({"b": 1, "a": "é"}) == canonical({"a": "é", "b": 1}) == '{"a":"\\u00e9","b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": float("nan")})
