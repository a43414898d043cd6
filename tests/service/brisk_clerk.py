"""The shipped clerk for tests, with shorter waits; SULQ_TEST_CLERK=ends: one that ends with any ledger's fault."""

from __future__ import annotations

import os

from sulq.curator.ledger.ledger import Ledger
from sulq.service.clerk import main, person_space
from sulq.service.clerk.person_space import PersonSpace

person_space.TURN_SECONDS = 0.2
person_space.PROBE_SECONDS = 0.5
person_space.MAX_STALL_SECONDS = 3.0
person_space.MAX_PAUSE_SECONDS = 1.0
main.BEAT = 0.2


def end(_space: PersonSpace, _ledger: Ledger) -> None:
    """What the clerk did of a ledger that takes no debit."""
    os._exit(1)


if __name__ == "__main__":
    if os.environ.get("SULQ_TEST_CLERK") == "ends":
        PersonSpace._let_go = end
    main.main()
