"""A clerk that reads ledgers in a thread of its own process, as it did before: the control of benchmarks.auditor."""

from __future__ import annotations

from sulq.curator.ledger.full_check import read_ledger
from sulq.service.clerk import main, request

if __name__ == "__main__":
    request.read_aside = read_ledger
    main.main()
