"""A table in PostgreSQL by its catalogue."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sulq.errors import SetupError
from sulq.sources.offered_tables import offered_tables
from tests.loaded import address, loaded


def test_an_address_offers_its_table_s_columns() -> None:
    """Names and types, and what these suggest; a table that is not there is refused."""
    url = loaded(pa.table({"pid": [1], "cost": [1.5], "ok": [True]}))
    (found,) = offered_tables(url)
    assert found.data == url
    assert found.kinds == {"pid": "int", "cost": "real", "ok": "bool"}
    with pytest.raises(SetupError, match="no table"):
        offered_tables(address(table="nowhere"))
