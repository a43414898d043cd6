"""Addresses of tables in PostgreSQL: our own words are taken out, and nothing shows who or with what password."""

from __future__ import annotations

import pytest

from sulq.addresses import TableAddress, foreign, is_address, meant, same_database
from sulq.errors import SetupError


def test_our_words_are_taken_out_and_the_rest_is_left():
    """`table`, `reader` and `limit` are sulq's, everything else PostgreSQL's."""
    url = "postgresql://ann:pw@host:5433/base?table=clinic.visits&sslmode=verify-full&reader=asker&limit=90"
    found = TableAddress.of(url)
    assert found.url == "postgresql://ann:pw@host:5433/base?sslmode=verify-full"
    assert (found.table, found.reader, found.limit) == ("clinic.visits", "asker", 90.0)
    assert str(found) == repr(found) == "postgresql://host:5433/base"
    assert "secret" not in str(TableAddress.of("postgresql://ann:secret?more@host/base"))
    bare = TableAddress.of("postgres://host/base")
    assert (bare.url, bare.table, bare.reader, bare.limit) == ("postgres://host/base", None, None, None)


def test_where_a_table_lies():
    """As the address says, else as in questions; in the schema public where none is said."""
    assert TableAddress.of("postgresql:///b").inside("visits") == ("public", "visits")
    assert TableAddress.of("postgresql:///b?table=a.v").inside("visits") == ("a", "v")
    assert TableAddress.of("postgresql:///b?table=a%2Ev").inside(None) == ("a", "v")
    with pytest.raises(SetupError, match="bad-declaration"):
        TableAddress.of("postgresql:///b").inside(None)


@pytest.mark.parametrize("words", ["table=", "reader=a&reader=b", "limit=0", "limit=nan", "limit=soon", "limit=1e9"])
def test_words_that_say_nothing_are_refused(words):
    """An empty word, one said twice, and a limit that is none."""
    with pytest.raises(SetupError, match="bad-config"):
        TableAddress.of(f"postgresql://ann:secret@host/b?{words}")


def test_what_the_words_say():
    """Names and values are unescaped, and of one that stands twice the last counts; ours are told from PostgreSQL's."""
    assert meant("postgresql://h/b?a=1&a=2&&%20b%20=%41") == {"a": "2", "b": "A"}
    assert foreign("postgresql://h/b?table=t&a=%41&reader=r") == ["a=%41"]
    assert foreign("postgresql://h/b") == []


def test_what_is_an_address():
    """Text that begins like one, and nothing else."""
    assert is_address("postgresql://h/b")
    assert is_address("POSTGRES://h/b")
    assert not is_address("https://h/b")
    assert not is_address("visits.parquet")
    assert not is_address(None)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("postgresql://a@h/b?table=t", "postgres://c@H:5432/b?ledger=l", True),
        ("postgresql://h:1,i:2/b", "postgresql://i:2/b", True),
        ("postgresql:///b?host=%2Frun", "postgresql://u:p%40@/b?host=/run&ledger=x", True),
        ("postgresql://h/b?port=7", "postgresql://h:7/b", True),
        ("postgresql://[::1]:7/b", "postgresql://[::1]:7/b", True),
        ("postgresql://h/b", "postgresql://h/c", False),
        ("postgresql://h:1/b", "postgresql://h:2/b", False),
        ("postgresql://h/b", "postgresql://i/b", False),
    ],
)
def test_which_addresses_name_one_database(one: str, other: str, same: object) -> None:
    """By host, port and name, as they are written; roles and our own words do not matter."""
    assert same_database(one, other) is same
