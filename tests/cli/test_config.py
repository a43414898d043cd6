"""The reader of NAME.sulq.toml and sulq.toml."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from sulq.cli.config import Config, DatasetConfig, find, read
from sulq.cli.settings import SETTINGS
from sulq.errors import SetupError
from sulq.language.domain import Bool, Category, Date, Int, Real, Text, Timestamp
from sulq.language.estimator import Certificate, Property, Stated, Utility
from sulq.language.privacy import DELTA_SHARES, Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.service.settings import Service

SURVEY = """
[dataset.survey]
data = "survey.parquet"
ledger = "kept/survey.ledger"
unit = { column = "respondent_id", rows = 5, neighbors = "replace_one", fold = "case" }
budget = { epsilon = 2.0, delta = 1e-6 }
size = 100000
[dataset.survey.columns]
age = { int = [0, 120] }
income = { real = [0, 200000], grid = 0.25 }
city = { category = ["Haifa", "Lod", "Yafo"] }
smoker = { bool = true }
visit = { date = [2020-01-01, "2026-12-31"] }
seen = { timestamp = ["2020-01-01T00:00:00", 2026-12-31T00:00:00Z] }
name = { text = true }
[server]
port = 9000
"""
SMALLEST = """
[dataset]
data = "survey.csv"
budget = { epsilon = 1 }
columns = { age = [0, 120] }
"""


def write(folder: Path, text: str, name: str = "sulq.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, text: str, name: str = "sulq.toml") -> SetupError:
    with pytest.raises(SetupError) as caught:
        read(write(folder, text, name))
    return caught.value


def with_dataset(line: str) -> str:
    """A sulq.toml whose one data set has this line instead of its own of that key."""
    lines = {"data": 'data = "a.csv"', "budget": "budget = { epsilon = 1 }", "columns": "columns = { age = [0, 120] }"}
    lines[line.partition("=")[0].strip()] = line
    return "[dataset.a]\n" + "\n".join(lines.values())


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    """Every declaration of the documented example becomes the value it stands for."""
    config = read(write(tmp_path, SURVEY))
    assert config == Config(
        tmp_path / "sulq.toml",
        {
            "survey": DatasetConfig(
                name="survey",
                data=tmp_path / "survey.parquet",
                ledger=tmp_path / "kept" / "survey.ledger",
                prepared=None,
                unit=Unit("respondent_id", rows=5, neighbors="replace_one", fold="case"),
                budget=EpsilonDelta(2.0, 1e-6),
                columns={
                    "age": Int(0, 120),
                    "income": Real(0, 200_000, 0.25),
                    "city": Category(("Haifa", "Lod", "Yafo")),
                    "smoker": Bool(),
                    "visit": Date("2020-01-01", "2026-12-31"),
                    "seen": Timestamp("2020-01-01T00:00:00", "2026-12-31T00:00:00"),
                    "name": Text(),
                },
                size=100_000,
                synthetic=False,
                table="survey",
            )
        },
        Service(tmp_path / "sulq.state", port=9000),
    )


def test_one_dataset_takes_the_name_of_its_file(tmp_path: Path) -> None:
    """[dataset] in NAME.sulq.toml is the data set NAME; [dataset.OTHER] names it itself."""
    assert list(read(write(tmp_path, SMALLEST, "people.sulq.toml")).datasets) == ["people"]
    named = SMALLEST.replace("[dataset]", "[dataset.other]")
    assert list(read(write(tmp_path, named, "people.sulq.toml")).datasets) == ["other"]


@pytest.mark.parametrize(
    ("line", "budget"),
    [
        ("{ epsilon = 0.5 }", Epsilon(0.5)),
        ("{ epsilon = 2, delta = 1e-9 }", EpsilonDelta(2, 1e-9)),
        ("{ rho = 0.1 }", Rho(0.1)),
        ("{ epsilon = 1, delta = 1e-6, queries = 100 }", SubLinear(1, 1e-6, 100)),
        ('{ epsilon = 1, delta = 1e-6, queries = 9, calibration = "dp" }', SubLinear(1, 1e-6, 9, "dp")),
    ],
)
def test_each_budget_is_read(tmp_path: Path, line: str, budget: object) -> None:
    """A budget's keys choose its kind."""
    assert read(write(tmp_path, with_dataset(f"budget = {line}"))).datasets["a"].budget == budget


@pytest.mark.parametrize("name", DELTA_SHARES)
def test_a_part_of_delta_is_read_exactly(tmp_path: Path, name: str) -> None:
    """0.2 is one fifth, and is handed on to `connect` and a server; left out it is none."""
    text = with_dataset("budget = { epsilon = 1, delta = 1e-6 }")
    found = read(write(tmp_path, f"{text}\n{name} = 0.2")).datasets["a"]
    assert getattr(found, name) == found.words()[name] == Fraction(1, 5)
    assert read(write(tmp_path, text)).datasets["a"].words()[name] is None
    error = refusal(tmp_path, f"{text}\n{name} = 0.95")
    assert (error.code, f"[dataset.a] {name}: " in error.message) == ("bad-declaration", True)


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("[0, 120]", Int(0, 120)),
        ("[0, 1.5]", Real(0, 1.5)),
        ('["x", "y"]', Category(("x", "y"))),
        ("[1, 2, 3]", Category((1, 2, 3))),
        ("{ category = [1, 2] }", Category((1, 2))),
        ("{ text = true, longest = 200 }", Text(200)),
        ("{ int = [0, 120], missing = false, default = 18 }", Int(0, 120, missing=False, default=18)),
        ("{ bool = true, missing = false }", Bool(missing=False)),
        ("{ text = true, missing = false, default = 'none' }", Text(missing=False, default="none")),
        (
            "{ date = [2020-01-01, 2020-12-31], missing = false, default = 2020-02-01 }",
            Date("2020-01-01", "2020-12-31", missing=False, default="2020-02-01"),
        ),
    ],
)
def test_short_columns_mean_what_they_mean_in_python(tmp_path: Path, line: str, column: object) -> None:
    """A bare pair of numbers is bounds, any other bare list is categories."""
    assert read(write(tmp_path, with_dataset(f"columns = {{ x = {line} }}"))).datasets["a"].columns["x"] == column


def test_places_are_relative_to_the_file_and_urls_stay(tmp_path: Path) -> None:
    """A path is looked for beside the configuration, wherever the command runs; a URL is left alone."""
    dataset = read(write(tmp_path, with_dataset('prepared = "p.db"'))).datasets["a"]
    assert (dataset.data, dataset.ledger, dataset.prepared) == (tmp_path / "a.csv", None, tmp_path / "p.db")
    assert read(write(tmp_path, with_dataset("prepared = false"))).datasets["a"].prepared is False
    url = read(write(tmp_path, with_dataset('data = "postgresql://host/base"'))).datasets["a"].data
    assert url == "postgresql://host/base"


@pytest.mark.parametrize(
    ("text", "unknown", "nearest"),
    [
        ("[datasets.a]", "datasets", "dataset"),
        (with_dataset('ledgr = "a.ledger"'), "ledgr", "ledger"),
        (with_dataset("unit = { colum = 'id' }"), "colum", "column"),
        (with_dataset("budget = { epsilom = 1 }"), "epsilom", "epsilon"),
        (with_dataset("columns = { age = { imt = [0, 1] } }"), "imt", "int"),
        ("[server]\nhst = '::1'", "hst", "host"),
        ("[server]\ntls_cerd = 'a.pem'", "tls_cerd", "tls_cert"),
        (with_dataset("shares = { alice = { shar = 1 } }"), "shar", "share"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(tmp_path: Path, text: str, unknown: str, nearest: str) -> None:
    """A mistyped setting is an error that names the one that was probably meant."""
    error = refusal(tmp_path, text)
    assert error.code == "bad-config"
    assert f"{unknown!r}" in error.message
    assert f"{nearest!r}" in error.message


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("columns = { age = { int = [120, 0] } }", "bad-bounds"),
        ("columns = { age = { int = [0, 1.5] } }", "bad-declaration"),
        ("columns = { age = { real = [0, inf] } }", "bad-bounds"),
        ("columns = { age = { int = [0, 1, 2] } }", "bad-config"),
        ("columns = { age = { int = [0, 1], real = [0, 1] } }", "bad-config"),
        ("columns = { age = { int = [0, 1], grid = 1 } }", "bad-config"),
        ("columns = { age = { bool = false } }", "bad-config"),
        ("columns = { age = { bool = true, longest = 9 } }", "bad-config"),
        ("columns = { age = { text = true, longest = 0 } }", "bad-bounds"),
        ("columns = { age = { text = true, longest = 'x' } }", "bad-declaration"),
        ("columns = { age = { date = ['yesterday', '2020-01-01'] } }", "bad-bounds"),
        ("columns = { age = 'int' }", "bad-config"),
        ("columns = {}", "bad-config"),
        ("budget = { delta = 1e-6 }", "bad-config"),
        ("budget = { epsilon = nan }", "bad-loss"),
        ("budget = { epsilon = -1 }", "bad-loss"),
        ("budget = { epsilon = inf }", "bad-loss"),
        ("budget = { epsilon = 1e-400 }", "bad-loss"),
        ("budget = { epsilon = true }", "bad-loss"),
        ("budget = { epsilon = '1' }", "bad-loss"),
        ("budget = 1", "bad-config"),
        ("unit = { rows = 5 }", "bad-declaration"),
        ("unit = { neighbors = 'bounded' }", "bad-declaration"),
        ("unit = { column = 'x', fold = 'upper' }", "bad-declaration"),
        ("basic_share = 0.1", "bad-declaration"),  # of Epsilon(1)
        ("basic_share = '0.1'", "bad-declaration"),
        ("key_share = 0.1", "bad-declaration"),  # of Epsilon(1)
        ("size = -1", "bad-config"),
        ("size = true", "bad-config"),
        ("synthetic = 1", "bad-config"),
        ("ledger = false", "bad-config"),
    ],
)
def test_a_bad_declaration_is_refused_with_its_place_T51(tmp_path: Path, line: str, code: str) -> None:
    """Reversed bounds, impossible budgets and wrong kinds are the owner's errors, with code and place (T12, T51)."""
    error = refusal(tmp_path, with_dataset(line))
    assert error.code == code
    assert "sulq.toml: [dataset.a]" in error.message


@pytest.mark.parametrize("key", ["data", "budget", "columns"])
def test_what_must_be_declared_is_asked_for_T12(tmp_path: Path, key: str) -> None:
    """Without data, budget or columns there is no data set, rather than one with defaults (T12, T21)."""
    lines = [line for line in with_dataset("size = 1").splitlines() if not line.startswith(key)]
    error = refusal(tmp_path, "\n".join(lines))
    assert error.code == "bad-config"
    assert f"needs {key!r}" in error.message


def test_a_file_that_is_not_there_or_not_toml(tmp_path: Path) -> None:
    """A missing file, text that is no TOML and bytes that are no text are three plain refusals."""
    with pytest.raises(SetupError) as caught:
        read(tmp_path / "none.toml")
    assert caught.value.code == "missing-file"
    assert refusal(tmp_path, "data == 1").code == "bad-config"
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SetupError) as caught:
        read(path)
    assert caught.value.code == "missing-file"


def test_a_dataset_is_found_by_file_by_name_and_by_declarations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command may name the data file, its declarations, or a data set of the configuration."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, SMALLEST.replace("survey.csv", "people.csv"), "people.sulq.toml")
    for name in ("people.csv", "people.sulq.toml", "people"):
        assert find(name).name == "people"
    with pytest.raises(SetupError) as caught:
        find("people.CSV.GZ")  # its declarations are of another file
    assert caught.value.code == "bad-config"
    config = write(tmp_path, SURVEY, "other.toml")
    assert find("survey", config).budget == EpsilonDelta(2.0, 1e-6)
    write(tmp_path, SURVEY)
    assert find("survey").name == "survey"


@pytest.mark.parametrize("name", ["absent", "absent.csv", "absent.sulq.toml"])
def test_a_dataset_that_is_nowhere_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A data set nobody declared is refused before any data is looked at."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError) as caught:
        find(name)
    assert caught.value.code == "missing-file"


def test_every_setting_is_described() -> None:
    """The table the reference page is made from says something about each setting."""
    assert all(text.endswith(".") for table in SETTINGS.values() for _, text in table.values())


SEVERAL = """
[dataset.clinic]
unit = { column = "pid", rows = 5 }
budget = { epsilon = 1 }
[dataset.clinic.tables.regions]
data = "regions.csv"
key = "code"
public = true
columns = { code = [0, 9] }
[dataset.clinic.tables.people]
data = "people.parquet"
key = "pid"
columns = { age = [0, 120] }
[dataset.clinic.tables.visits]
data = "visits.parquet"
person = "patient"
size = 40
columns = { cost = { real = [0, 10] } }
"""


def test_a_dataset_of_several_tables_is_read(tmp_path: Path) -> None:
    """Each table's declarations; the first private one stands for the data set."""
    found = read(write(tmp_path, SEVERAL)).datasets["clinic"]
    assert list(found.tables) == ["regions", "people", "visits"]
    assert found.tables["regions"].public
    assert (found.tables["people"].key, found.tables["visits"].person, found.tables["visits"].size) == (
        "pid",
        "patient",
        40,
    )
    assert found.data == tmp_path / "people.parquet"
    linked = SEVERAL.replace('person = "patient"', 'person = "patient"\nreferences = { home = "people" }')
    assert read(write(tmp_path, linked)).datasets["clinic"].tables["visits"].references == {"home": "people"}
    assert found.tables["visits"].references == {}
    beside = write(tmp_path, SEVERAL.replace("dataset.clinic", "dataset"), "clinic.sulq.toml")
    assert find(str(beside)).files == tuple(
        tmp_path / name for name in ("regions.csv", "people.parquet", "visits.parquet")
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('person = "patient"', 'persn = "patient"', "'person'"),
        ('key = "pid"', "key = 3", "a column's name"),
        ("public = true", 'public = "yes"', "true or false"),
        ('person = "patient"', "references = { home = 3 }", "a table's name"),
        ('person = "patient"', 'references = "people"', "must be a table"),
        ('data = "visits.parquet"', "", "needs 'data'"),
        ('data = "visits.parquet"', 'data = "https://x.org/v"', "must be a file"),
        ("budget = { epsilon = 1 }", 'budget = { epsilon = 1 }\ndata = "a.csv"', "belongs to each"),
        ("budget = { epsilon = 1 }", "", "needs 'budget'"),
        ("columns = { age = [0, 120] }", "columns = {}", "at least one column"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    """The message names the table and what it should say."""
    assert old in SEVERAL
    error = refusal(tmp_path, SEVERAL.replace(old, new, 1))
    assert said in str(error)
    assert "dataset.clinic" in str(error)


def test_tables_that_protect_nobody_are_refused(tmp_path: Path) -> None:
    """All public, or none at all."""
    alone = "[dataset.a]\nbudget = { epsilon = 1 }\n"
    public = "[dataset.a.tables.b]\ndata = 'b.csv'\npublic = true\ncolumns = { x = [0, 1] }"
    assert "nobody" in str(refusal(tmp_path, alone + public))
    assert "at least one table" in str(refusal(tmp_path, f"{alone}tables = {{}}"))


SERVED = """
[dataset.a]
data = "a.csv"
budget = { epsilon = 1 }
columns = { age = [0, 120] }
shares = { alice = { share = 0.5, reserve = 0.1 }, bob = { } }
anchor = "elsewhere/a.anchor"
schedule = 2
ledger = "postgresql://host/ledgers"
[server]
host = "0.0.0.0"
hosts = ["curator.example.org"]
tls_cert = "cert.pem"
tls_key = "key.pem"
state = "kept"
data_root = "data"
ledgers = "books"
anchors = "elsewhere"
workers = 3
limit = 12.5
memory = 1024
web = 2
jobs = 3
job_limit = 60
job_memory = 1500
share_answers = true
rate = 60
schedule = 0.5
public_url = "https://Curator.example.org:443/"
"""


def test_the_servers_settings_are_read(tmp_path: Path) -> None:
    """Each setting of [server], and of a dataset what the server needs; places are relative to the file."""
    found = read(write(tmp_path, SERVED))
    assert found.server == Service(
        tmp_path / "kept", "0.0.0.0", 8765, tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "data", 3, 12.5,
        1024, 2, True, 60, 0.5, ("curator.example.org",), "https://curator.example.org", False, tmp_path / "books",
        3, 60.0, 1500, tmp_path / "elsewhere",
    )  # fmt: skip
    dataset = found.datasets["a"]
    assert dict(dataset.shares) == {"alice": (0.5, 0.1), "bob": (1.0, 0.0)}
    assert (dataset.anchor, dataset.schedule) == (tmp_path / "elsewhere" / "a.anchor", 2.0)
    assert dataset.ledger == "postgresql://host/ledgers"


@pytest.mark.parametrize(
    "line",
    [
        'public_url = "http://curator.example.org"',
        'public_url = "https://curator.example.org/console"',
        "public_url = 1",
        "port = -1",
        "port = 65536",
        "port = 1.5",
        "workers = 0",
        "memory = 1",
        "web = 0",
        "jobs = 0",
        "job_limit = 0",
        "job_memory = 256",
        "rate = 0",
        "rate = true",
        "limit = 0",
        "limit = nan",
        "limit = '3'",
        "schedule = -1",
        "hosts = 'a'",
        "hosts = [1]",
        "tls_cert = 'a.pem'",
        "tls_key = 'a.pem'",
        "share_answers = 1",
        "insecure_public = 'yes'",
        "state = 3",
        "host = 1",
    ],
)
def test_a_setting_of_the_server_that_makes_no_sense_is_refused(tmp_path: Path, line: str) -> None:
    """With the setting's name and the place in the file."""
    error = refusal(tmp_path, f"[server]\n{line}")
    assert error.code == "bad-config"
    assert "[server]" in error.message


@pytest.mark.parametrize(
    "line", ["{ a = 1 }", "{ a = { share = 2 } }", "{ a = { reserve = -0.1 } }", "{ a = { share = '1' } }"]
)
def test_shares_are_fractions(tmp_path: Path, line: str) -> None:
    """A share or a reserve outside 0 to 1 is refused where it is written."""
    assert refusal(tmp_path, with_dataset(f"shares = {line}")).code == "bad-config"


def test_a_graph_and_the_owners_functions_are_read(tmp_path: Path) -> None:
    """Two columns or three; a function's place, or a table with its certificate (SR5)."""
    line = 'graph = ["u", "v"]\nestimators = { a = "p:f", b = { function = "p:g", reads = 0.1, within = 2, '
    line += 'probability = 0.9, low = 0, high = 50, columns = ["x"] } }'
    found = read(write(tmp_path, with_dataset(line))).datasets["a"]
    assert found.graph == ("u", "v")
    assert found.estimators == {"a": "p:f", "b": ("p:g", Certificate(0.1, 2.0, 0.9, 0.0, 50.0, ("x",)))}


@pytest.mark.parametrize(
    "line",
    [
        'graph = "u"',
        "graph = [1, 2]",
        "estimators = 3",
        "estimators = { a = 3 }",
        'estimators = { a = { function = "p:f" } }',
        'estimators = { a = { function = "p:f", raeds = 0.1 } }',
    ],
)
def test_a_bad_graph_or_function_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    """The error names the data set."""
    error = refusal(tmp_path, with_dataset(line))
    assert error.code == "bad-config"
    assert "dataset.a" in error.message


def test_what_an_owner_declares_of_functions_is_read_by_its_keys_S4_27(tmp_path: Path) -> None:
    """A sensitivity, a utility with candidates and weights, properties of graphs and of tables."""
    lines = """
    [dataset.a.estimators]
    spread = { function = "p:f", sensitivity = 0.5, low = 0, high = 9, columns = ["x"], width = 2 }
    sparse = { function = "p:h", property = true }
    clumped = { function = "p:h", property = true, columns = ["x"], rows = 3 }
    [dataset.a.estimators.plan]
    function = "p:g"
    candidates = ["a", ["b", 2]]
    sensitivity = 1
    low = 0
    high = 9
    columns = ["x"]
    weights = [1, 3]
    """
    found = read(write(tmp_path, with_dataset("") + lines)).datasets["a"].estimators
    assert found == {
        "spread": ("p:f", Stated(0.5, 0, 9, ("x",), 2)),
        "plan": ("p:g", Utility(("a", ("b", 2)), 1, 0, 9, ("x",), (1, 3))),
        "sparse": ("p:h", Property()),
        "clumped": ("p:h", Property(("x",), 3)),
    }


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"probability": "0.55"}, "above (1 + reads)/2"),
        ({"reads": '"x"'}, "three finite numbers"),
        ({"columns": None}, "needs 'columns'"),
        ({"columns": '"x"'}, "names its columns"),
        ({"columns": "[]"}, "names its columns"),
        ({"width": "2"}, "has 'width', which a Certificate does not say"),
    ],
    ids=str,
)
def test_a_bad_certificate_is_refused_with_its_place(tmp_path: Path, wrong: dict[str, str | None], word: str) -> None:
    """One that says too little, at equality (E41), or of no columns; control: the right one is read."""
    right = {"function": '"p:f"', "reads": "0.1", "within": "1", "probability": "0.9", "low": "0", "high": "1"}
    right["columns"] = '["x"]'

    def line(told: dict[str, str | None]) -> str:
        return f"estimators = {{ a = {{ {', '.join(f'{k} = {v}' for k, v in told.items() if v is not None)} }} }}"

    assert read(write(tmp_path, with_dataset(line(right)))).datasets["a"].estimators is not None
    error = refusal(tmp_path, with_dataset(line(right | wrong)))
    assert error.code == "bad-config"
    assert "dataset.a" in error.message
    assert word in error.message
