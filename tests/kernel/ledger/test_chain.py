"""The hash chain; receipts are plain values: whoever holds one holds no key and no source of random bits."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from sulq.kernel.ledger.chain import ORIGIN, Receipt, canonical, link


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


def test_a_receipt_says_where_its_debit_stands_T60() -> None:
    """By the number of its entry and the beginning of its hash; a stored answer is no part of it."""
    receipt = Receipt(7, "ab" * 32, "plan", "mac")
    assert str(receipt) == "entry 7 (abababababab)"
    assert receipt == Receipt(7, "ab" * 32, "plan", "mac", stored="an answer")
    assert "an answer" not in repr(Receipt(7, "ab" * 32, "plan", "mac", stored="an answer"))


def test_a_receipt_loads_no_source_of_noise_T67() -> None:
    """Whoever only reads plans and receipts has none to copy. Control: a writer, which draws keys, loads one."""
    for module, drawn in (("chain", False), ("writer", True)):
        code = f"import sys, sulq.kernel.ledger.{module}; print('sulq.kernel.entropy' in sys.modules)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout.strip() == str(drawn)
