"""Where a worker finds its database: the hosts an address names, and the same address by way of the relay."""

from __future__ import annotations

import pytest

from sulq.errors import SetupError
from sulq.service.worker.database import ProxyRoute, base, files, is_secret, near, variables, ways


@pytest.mark.parametrize(
    ("url", "environment", "found"),
    [
        ("postgresql://ann@db.example.org/base", {}, [("db.example.org", 5432)]),
        ("postgresql://ann:p%40ss@db:6000/base?sslmode=verify-full", {}, [("db", 6000)]),
        ("postgresql://[2001:db8::1]:6000/base", {}, [("2001:db8::1", 6000)]),
        ("postgresql://a:1,b,c:3/base", {}, [("a", 1), ("b", 5432), ("c", 3)]),
        ("postgresql:///base?host=/run/postgresql", {}, [("/run/postgresql", 5432)]),
        ("postgresql://%2Frun%2Fpostgresql/base", {}, [("/run/postgresql", 5432)]),
        ("postgresql://a:1/base?host=b&port=2", {}, [("b", 2)]),
        ("postgresql://a,b/base?port=7", {}, [("a", 7), ("b", 7)]),
        ("postgresql://db/base?hostaddr=192.0.2.7", {}, [("192.0.2.7", 5432)]),
        ("postgresql://db/base?h%6Fst=other", {}, [("other", 5432)]),
        ("postgresql:///base", {"PGHOST": "db", "PGPORT": "7000"}, [("db", 7000)]),
        ("postgresql://db/base", {"PGHOST": "no", "PGPORT": "7000"}, [("db", 7000)]),
    ],
)
def test_the_hosts_of_an_address(url: str, environment: dict[str, str], found: list[tuple[str, int]]) -> None:
    """As PostgreSQL's library reads it, each with a place of its own in the worker's network."""
    assert ways(url, environment) == tuple(
        ProxyRoute(f"127.0.0.{i + 1}", port, host) for i, (host, port) in enumerate(found)
    )


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("postgresql:///base", {}),
        ("postgresql://db/base?service=clinic", {}),
        ("postgresql://db/base", {"PGSERVICE": "clinic"}),
        ("postgresql://a,b/base?port=1,2,3", {}),
        ("postgresql://a,/base", {}),
        ("postgresql://a:none/base", {}),
        ("postgresql://a:0/base", {}),
        ("postgresql://a/base?port=70000", {}),
        (f"postgresql://{','.join('abcdefghijklmnopq')}/base", {}),
    ],
)
def test_an_address_without_a_known_host_is_refused(url: str, environment: dict[str, str]) -> None:
    """A server must know where its workers may connect before it starts them."""
    with pytest.raises(SetupError) as refused:
        ways(url, environment)
    assert refused.value.code == "bad-config"
    assert "PGPASSWORD" in str(refused.value)


def test_the_same_database_by_way_of_the_relay() -> None:
    """The listeners come last, so they count; names, roles and all else stay. A socket has no TLS."""
    psycopg = pytest.importorskip("psycopg")
    from psycopg.conninfo import conninfo_to_dict

    for url in ("postgresql://ann@a:1,b/base?sslmode=verify-full&hostaddr=192.0.2.1,192.0.2.2", "postgresql://a/base"):
        before, after = conninfo_to_dict(url), conninfo_to_dict(near(url, {}))
        found = ways(url, {})
        assert after["hostaddr"] == ",".join(way.near for way in found)
        assert after["port"] == ",".join(str(way.port) for way in found)
        same = {name: value for name, value in before.items() if name not in ("hostaddr", "port")}
        assert {name: after.get(name) for name in same} == same
    assert conninfo_to_dict(near("postgresql:///base?host=/run/pg&sslmode=require", {}))["sslmode"] == "disable"
    assert "sslmode" not in conninfo_to_dict(near("postgresql://a/base", {}))
    assert psycopg is not None


@pytest.mark.parametrize(
    ("url", "environment", "host"),
    [
        ("postgresql:///base?hostaddr=192.0.2.7", {}, "192.0.2.7"),
        ("postgresql:///base?hostaddr=192.0.2.7,fe80::1%25eth0", {}, "192.0.2.7,fe80::1%eth0"),
        ("postgresql:///base", {"PGHOSTADDR": "192.0.2.7"}, "192.0.2.7"),
        ("postgresql://db/base?hostaddr=192.0.2.7", {}, "db"),
        ("postgresql:///base?hostaddr=192.0.2.7", {"PGHOST": "db"}, None),  # the library takes the variable
    ],
)
def test_a_password_is_looked_for_under_the_host_that_is_meant(
    url: str, environment: dict[str, str], host: str | None
) -> None:
    """A number without a name keeps its own: else PostgreSQL's library would look for the listener's."""
    pytest.importorskip("psycopg")
    from psycopg.conninfo import conninfo_to_dict

    found = conninfo_to_dict(near(url, environment))
    assert found.get("host") == host
    assert found["hostaddr"].startswith("127.0.0.1")


@pytest.mark.parametrize(
    ("url", "environment", "name"),
    [
        ("postgresql://ann@db/clinic", {"PGDATABASE": "other"}, "clinic"),
        ("postgresql://ann@db/cl%69nic", {}, "clinic"),
        ("postgresql://ann@db/a%2Fb?x=1", {}, "a/b"),
        ("postgresql://ann@db/ward?dbname=clinic", {}, "clinic"),
        ("postgresql://ann@db", {"PGDATABASE": "clinic"}, "clinic"),
        ("postgresql://ann:pw@db/", {}, "ann"),
        ("postgresql://%61nn@db?dbname=", {"PGDATABASE": "clinic"}, "ann"),
        ("postgresql://db?user=bob", {"PGUSER": "eve"}, "bob"),
        ("postgresql://db", {"PGUSER": "eve"}, "eve"),
    ],
)
def test_the_name_of_a_database(url: str, environment: dict[str, str], name: str) -> None:
    """As PostgreSQL's library has it: escaped or not, by its variable, and else as the role is called."""
    assert base(url, environment) == name


def test_files_and_variables_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those an address names, those of its variables, those in a home; of the environment its own and HOME alone."""
    monkeypatch.setenv("PGSSLROOTCERT", "/certs/root.pem")
    monkeypatch.setenv("HOME", "/people/ann")
    found = files("postgresql://h/b?passfile=%2Fsecret%2Fpass&sslcert=/c.pem")
    assert {"/secret/pass", "/c.pem", "/certs/root.pem", "/people/ann/.pgpass", "/people/ann/.postgresql"} <= set(found)
    assert not {"/", "/etc", "/people/ann"} & set(found)
    told = {"PGPASSWORD": "p", "HOME": "/h", "SULQ_TOKEN": "t", "PGX": "1", "pgx": "2", "AWS_SECRET": "s"}
    assert variables(told) == {"PGPASSWORD": "p", "HOME": "/h", "PGX": "1"}
    assert [name for name in (*told, "PGHOST", "PGDATABASE", "PGPASSFILE") if is_secret(name)] == [
        "PGPASSWORD", "PGX", "PGPASSFILE",
    ]  # fmt: skip
