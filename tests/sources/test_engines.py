"""The table of engines, and the door that opens them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sulq.errors import SetupError
from sulq.language.domain import Category, Schema
from sulq.language.privacy import Unit
from sulq.sources.engines import ENGINES
from tests.loaded import loaded
from tests.sources.cases import ASKED, KEY, SCHEMA, open_engine, parquet, plain_engine, sums, table


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "spark"])
def test_every_engine_opens_by_its_name(engine: str, tmp_path: Path) -> None:
    """Each gives the same sums of a frame and of a file, and says what it read."""
    found = []
    files = [
        (table(), "frame"),
        (parquet(tmp_path), "data.parquet "),
        (str(tmp_path / "data.parquet"), "data.parquet "),
    ]
    sources = [(loaded(table()), "postgresql ")] if engine == "postgres" else files
    for data, said in sources:
        opened = open_engine(data, schema=SCHEMA, unit=Unit("who", 2), key=KEY, engine=engine)
        assert opened.fingerprint().startswith(said)
        opened.ready()
        found.append(sums(opened, *ASKED))
    assert all(sums_ == sums(plain_engine(table(), Unit("who", 2))) for sums_ in found)


def test_a_prepared_copy_may_be_named_by_text(tmp_path: Path) -> None:
    """A path given as text is a path."""
    copy = tmp_path / "data.prepared"
    opened = open_engine(parquet(tmp_path), schema=SCHEMA, unit=Unit(), key=KEY, prepared=str(copy))
    opened.ready()
    opened.close()
    assert copy.exists()


def test_what_cannot_be_opened_is_refused() -> None:
    """An unknown engine, and categories that no data can hold, are refused before anything is read."""
    with pytest.raises(SetupError) as refused:
        open_engine(table(), schema=SCHEMA, unit=Unit(), key=KEY, engine="oracle")
    assert refused.value.code == "engine-not-available"
    for value in ("a\x00b", "\ud800"):
        schema = Schema("data", (("city", Category((value,))),))
        with pytest.raises(SetupError) as refused:
            open_engine(table(), schema=schema, unit=Unit(), key=KEY)
        assert refused.value.code == "bad-declaration"
