"""The old address of the class that `sulq.connect` returns."""

from __future__ import annotations

import sulq.api.database
import sulq.database


def test_the_old_address_names_the_same_class() -> None:
    """Type annotations that users wrote before the move keep working."""
    assert sulq.database.Database is sulq.api.database.Database
