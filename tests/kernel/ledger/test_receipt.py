"""Receipts are plain values: whoever holds one holds no key and no source of random bits."""

from __future__ import annotations

import subprocess
import sys

from sulq.kernel.ledger.receipt import Receipt


def test_T60_a_receipt_says_where_its_debit_stands() -> None:
    """By the number of its entry and the beginning of its hash; a stored answer is no part of it."""
    receipt = Receipt(7, "ab" * 32, "plan", "mac")
    assert str(receipt) == "entry 7 (abababababab)"
    assert receipt == Receipt(7, "ab" * 32, "plan", "mac", stored="an answer")
    assert "an answer" not in repr(Receipt(7, "ab" * 32, "plan", "mac", stored="an answer"))


def test_T67_a_receipt_loads_no_source_of_noise() -> None:
    """Whoever only reads plans and receipts has none to copy. Control: the seal, which draws its key, loads one."""
    for module, drawn in (("receipt", False), ("seal", True)):
        code = f"import sys, sulq.kernel.ledger.{module}; print('sulq.kernel.entropy' in sys.modules)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout.strip() == str(drawn)
