"""A worker that forgets which receipts it acted on: the control of the tests that would catch one."""

from __future__ import annotations

from sulq.kernel.ledger.chain import Seal
from sulq.server import worker

if __name__ == "__main__":
    Seal.redeem = Seal.verifies
    worker.main()
