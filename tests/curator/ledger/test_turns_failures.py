"""What a store and the system say, in our own errors."""

from __future__ import annotations

import apsw
import pytest

from sulq.curator.ledger.turns import opening, writing
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.ledger.store import Busy, Doubt


@pytest.mark.parametrize(
    ("said", "family", "code"),
    [
        (Busy("held"), SetupError, "ledger-busy"),
        (apsw.BusyError("locked"), SetupError, "ledger-busy"),
        (Doubt("gone"), CuratorError, "ledger-failed"),
        (apsw.CantOpenError("no"), SetupError, "missing-file"),
        (apsw.IOError("disk"), SetupError, "ledger-failed"),
        (PermissionError(13, "denied"), SetupError, "missing-file"),
        (apsw.CorruptError("torn"), SetupError, "ledger-damaged"),
        (ValueError("not text"), SetupError, "ledger-damaged"),
    ],
)
def test_each_failure_has_its_code(said: Exception, family: type[SulqError], code: str) -> None:
    """While a ledger is opened or read."""
    with pytest.raises(SulqError) as refused, opening():
        raise said
    assert (type(refused.value), refused.value.code) == (family, code)


def test_what_a_proposer_raises_passes() -> None:
    """While entries are written, errors of others' are their own."""
    with pytest.raises(ZeroDivisionError), writing():
        raise ZeroDivisionError
