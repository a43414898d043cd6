"""A worker that forgets which receipts it acted on: the control of the tests that would catch one."""

from __future__ import annotations

from sulq.kernel.ledger.chain import Seal
from sulq.service.worker import main

if __name__ == "__main__":
    Seal.redeem = Seal.verifies
    main.main()
