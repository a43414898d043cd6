"""CSV files: what is accepted has one reading, the same for every reader (T96)."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import random
import re
from pathlib import Path

import duckdb
import pytest

from sulq.errors import SetupError
from sulq.language.domain import Int, Schema, Text
from sulq.language.privacy import Unit
from sulq.sources.decode import csv_file, files
from sulq.sources.origin import Origin
from sulq.sources.source import RegisteredTable, describe
from tests.counts import count, generator
from tests.sources import plain_reading as reading

FIELD = re.compile(r'"((?:[^"]|"")*)"|([^",\r\n]*)')
MARK = b"\xef\xbb\xbf"
PIECES = [b"a", b"7", b",", b",", b'"', b'"', b"\n", b"\n", b"\r", b"\r\n", b"\0", b"\xff", "é".encode(), b" ", b"\\"]
PIECES += [b'""', b'"x"', b'"\n"', b'","', b"\xef\xbb\xbf", b"#", b"'", b"\t", b";"]


def reference(data: bytes) -> list[list[str]] | None:
    """The records of a file by the grammar of RFC 4180, one token after the other; None where it has none."""
    try:
        marked, text = data.startswith(MARK), data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    records: list[list[str]] = []
    ends: set[str] = set()
    place = 0
    while place < len(text):
        record = []
        while True:
            found = FIELD.match(text, place)
            assert found is not None
            record.append(found[2] if found[1] is None else found[1].replace('""', '"'))
            place = found.end()
            if text[place : place + 1] != ",":
                break
            place += 1
        if record == [""] and text[place - 1 : place] != '"':  # blank: readers differ on it
            return None
        records.append(record)
        ended = re.compile(r"\r?\n|\Z").match(text, place)
        if ended is None:
            return None
        ends |= {ended[0]} - {""}
        place = ended.end()
    if records and re.search(r"[\r\n]", "".join(records[0])):  # DuckDB takes it for how lines end
        return None
    if marked and text.startswith('"') and re.search('[",]', records[0][0]):  # DuckDB takes its quote for text
        return None
    return records if len({len(record) for record in records}) <= 1 and len(ends) <= 1 else None


def accepted(data: bytes, size: int = csv_file.BLOCK_BYTES) -> int | None:
    """How many records the check counts, reading so many bytes at a time; None where it refuses."""
    checker, file, rest = csv_file._Checker("t.csv"), io.BytesIO(data), b""
    try:
        while True:
            block = file.read(size)
            rest = checker.whole(rest + block, last=not block)
            if not block:
                return checker.records
    except SetupError:
        return None


def generated(rng: random.Random) -> bytes:
    """A file, most often with some of RFC 4180 about it."""
    if rng.random() < 0.4:
        return b"".join(rng.choices(PIECES, k=rng.randrange(14)))
    text, width = io.StringIO(), rng.randrange(1, 4)
    quoting = rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC])
    writer = csv.writer(text, lineterminator=rng.choice(["\n", "\r\n"]), quoting=quoting)
    cells = ["a", "", "é", 'x"y', "1,2", "p\nq", "p\r\nq", "\r", " b ", '"', "7", "#", "\\", "\n"]
    for _ in range(rng.randrange(6)):
        writer.writerow([rng.choice(cells) for _ in range(width)])
    data = MARK * (rng.random() < 0.3) + text.getvalue().encode()
    if rng.random() < 0.5:  # one hostile piece somewhere
        place = rng.randrange(len(data) + 1)
        data = data[:place] + rng.choice(PIECES) + data[place + rng.randrange(2) :]
    return data if rng.random() < 0.7 else data.removesuffix(b"\n")


def heading(rng: random.Random, width: int) -> bytes:
    """A first record of different names, some in quotes, perhaps after a byte order mark."""
    more = rng.choice([b"", b"", b" ", b",", b'""', b',""', b"\n", b"\r\n", b"\r"])
    names = [b"%c" % (ord("h") + i) for i in range(width)]
    names = [b'"%b%b%b"' % (name, more, name) if rng.random() < 0.5 else name for name in names]
    return MARK * (rng.random() < 0.4) + b",".join(names)


def test_the_check_is_the_grammar_T96() -> None:
    """Every file of up to five of the bytes that matter is accepted exactly where the grammar has records for it."""
    for length in range(6):
        for pieces in itertools.product(b'a,"\n\r', repeat=length):
            for data in (bytes(pieces), MARK + bytes(pieces)):
                records = reference(data)
                assert accepted(data) == (None if records is None else len(records)), data


def test_blocks_change_nothing_T96() -> None:
    """Where a block of bytes ends has no meaning."""
    rng = generator("blocks of CSV files")
    for _ in range(count("CSV files in blocks", short=2_000, long=20_000)):
        data = generated(rng)
        records = reference(data)
        want = None if records is None else len(records)
        assert accepted(data) == want, data
        assert accepted(data, rng.randrange(1, 9)) == want, data


def test_what_is_malformed_is_found_among_blocks_that_are_not_T96(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its line, in whatever block it stands: one of plain records is looked at less closely.

    Control: where a block is taken for plain by its number of commas alone, what is malformed passes.
    """
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 64)
    path, good, lines = tmp_path / "t.csv", b"12,abc,7\n", 50
    for bad in (b"1,2\n,3,4,5\n", b'1,"2,3\n', b"1,2\r,3\n", b"1,\0,3\n", b"1,\xff,3\n", b"\n", b"1,2,3\r\n"):
        for place in range(1, lines):
            path.write_bytes(good * place + bad + good * (lines - place))
            with pytest.raises(SetupError, match=f"Line {place + 1} ") as refused:
                csv_file.check(path)
            assert refused.value.code == "malformed-csv"
    path.write_bytes(good * lines)
    assert csv_file.check(path) == (lines - 1, True)

    def commas(checker: csv_file._Checker, data: bytes) -> bool:
        found = data.count(b",") == 2 * data.count(b"\n")
        checker.records += found * data.count(b"\n")
        return found

    monkeypatch.setattr(csv_file._Checker, "_alike", commas)
    path.write_bytes(good * 9 + b"1,2\n,3,4,5\n" + good * 9)
    assert csv_file.check(path) == (19, True)


def test_every_reader_finds_the_same_records_T96(tmp_path: Path) -> None:
    """What is accepted, Python's reader and DuckDB's read as the grammar does; what it refuses, none reads."""
    rng = generator("readers of CSV files")
    read = {"accepted": 0, "refused": 0}
    with duckdb.connect() as connection:
        for _ in range(count("CSV files in every reader", short=300, long=20_000)):
            data = generated(rng)
            ending = b"\r\n" if b"\r\n" in data else b"\n"
            width = len(((reference(b"h" + data) or [[""]]) or [[""]])[0])
            data = heading(rng, width) + ending + data.removeprefix(MARK)
            path = tmp_path / ("t.csv.gz" if rng.random() < 0.3 else "t.csv")
            path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
            records = reference(data)
            if records is None:
                read["refused"] += 1
                with pytest.raises(SetupError, match="malformed-csv"):
                    csv_file.check(path)
                continue
            read["accepted"] += 1
            want = [tuple(cell or None for cell in record) for record in records[1:]]
            assert csv_file.check(path)[0] == len(want)
            names = csv_file.header(path)
            table = reading.csv_table(path, range(len(names)))
            assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == want, data
            source = describe(Origin.of(path), Schema.of("t", {name: Text() for name in names}), Unit(), None)
            assert connection.execute(f"SELECT * FROM {source.relation}").fetchall() == want, data
            relation = files.csv_records(path, len(names), places=True)
            numbered = [(*record, place) for place, record in enumerate(want)]
            assert connection.execute(f"SELECT * FROM {relation}").fetchall() == numbered, data
    assert min(read.values()) > 50


def test_a_lax_reader_is_noticed_T96() -> None:
    """The control: a reader that takes what it can get has other records for a file that the grammar refuses."""
    text = 'h,i\n1,"abc\n2,b\n3,c\n'
    assert list(csv.reader(io.StringIO(text))) == [["h", "i"], ["1", "abc\n2,b\n3,c\n"]]
    assert reference(text.encode()) is None


MALFORMED = {
    "backslash": (b'a,b\n1,2\n3,"5\\" pipe"\n5,6\n', 3, "written twice"),
    "open": (b'a,b\n1,"abc\n3,4\n', 2, "written twice"),
    "stray": (b'a,b\n1,2\n3,5" pipe\n', 3, "written twice"),
    "CR": (b"a,b\n1,2\r3,4\n", 2, "all with CRLF"),
    "last CR": (b"a,b\n1,2\r", 2, "all with CRLF"),
    "mixed": (b"a,b\n1,2\n3,4\r\n", 3, "all with CRLF"),
    "LF in a name": (b'a,"b\nc"\r\n1,2\r\n', 1, "on one line"),
    "CR in a name": (b'a,"b\rc"\n1,2\n', 1, "on one line"),
    "mark and quote": (b'\xef\xbb\xbf"a, ""b""",c\n1,2\n', 1, "without a byte order mark"),
    "few": (b'a,b\n1,"x\ny"\n3\n', 4, "quotes around"),
    "many": (b"a,b\n1,2\n3,4,5\n", 3, "quotes around"),
    "blank": (b"a,b\n1,2\n\n3,4\n", 3, "without blank lines"),
    "blank at the end": (b"a,b\r\n1,2\r\n\r\n", 3, "without blank lines"),
    "blank first": (b"\na,b\n1,2\n", 1, "without blank lines"),
    "last comma": (b"a,b\r\n1,2,\r\n", 2, "comma at the end"),
    "space before": (b'a,b\n1, "2"\n', 2, "without spaces"),
    "space after": (b'a,b\n"1" ,2\n', 2, "without spaces"),
    "NUL": (b"a,b\n1,2\n3,\x00\n", 3, "NUL"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16-le"), 1, "UTF-8"),
    "Latin-1": (b"a,b\n1,caf\xe9\n", 2, "UTF-8"),
    "long": (b"a,b\n1,2\n3," + b"x" * csv_file.MAX_RECORD_BYTES + b"\n", 3, ""),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("zipped", [False, True])
def test_the_owner_is_told_the_line_and_the_setting(tmp_path: Path, name: str, *, zipped: bool) -> None:
    """Each fault has its line and a next step, gzipped or not."""
    data, line, remedy = MALFORMED[name]
    path = tmp_path / ("t.csv.gz" if zipped else "t.csv")
    path.write_bytes(gzip.compress(data) if zipped else data)
    with pytest.raises(SetupError) as refused:
        csv_file.check(path)
    assert refused.value.code == "malformed-csv"
    assert refused.value.message.startswith(f"Line {line} of ")
    assert remedy in refused.value.remedy


def test_a_long_record_is_read_and_a_longer_one_is_not(tmp_path: Path) -> None:
    """DuckDB reads every record that the check lets through."""
    path = tmp_path / "t.csv"
    text = b'"' + b"x\n" * (csv_file.MAX_RECORD_BYTES // 2 - 4)
    path.write_bytes(b"a,b\n1,2\n3," + text + b'"\n')
    assert csv_file.check(path)[0] == 2
    source = describe(Origin.of(path), Schema.of("t", {"a": Text(), "b": Text()}), Unit(), None)
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT max(strlen(s1)) FROM {source.relation}").fetchone() == (len(text) - 1,)
    path.write_bytes(b"a,b\n1,2\n3," + text + b'xxxxxxxx"\n')
    with pytest.raises(SetupError, match="longer than"):
        csv_file.check(path)


@pytest.mark.parametrize("quotes", [False, True])
def test_a_record_without_an_end_is_read_no_farther_than_it_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, quotes: bool
) -> None:
    """However long a line is, what is held of it stays within the longest record and a block."""
    path, real, held = tmp_path / "t.csv", csv_file._Checker.whole, []
    path.write_bytes(b"a,b\n1,2\n3," + b'"' * quotes + b"x" * (3 * csv_file.MAX_RECORD_BYTES))

    def whole(self: object, data: bytes, *, last: bool) -> bytes:
        held.append(len(data))
        return real(self, data, last=last)

    monkeypatch.setattr(csv_file._Checker, "whole", whole)
    with pytest.raises(SetupError, match="longer than"):
        csv_file.check(path)
    assert csv_file.MAX_RECORD_BYTES < max(held) <= csv_file.MAX_RECORD_BYTES + 2 * csv_file.BLOCK_BYTES


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    """As some programs write them."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
    assert csv_file.check(path)[0] == 2
    source = describe(Origin.of(path), Schema.of("t", {"a": Text(), "b": Text()}), Unit(), None)
    with duckdb.connect() as connection:
        assert len(connection.execute(f"SELECT * FROM {source.relation}").fetchall()) == 2


@pytest.mark.parametrize("more", [b"\0", b"\0" * 64, b"g", b"garbage!!", b"\x1f\x8b"])
def test_nothing_follows_the_last_gzip_member(more: bytes, tmp_path: Path) -> None:
    """DuckDB stops at it when it reads the rows: the owner is stopped before."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n") + more)
    with pytest.raises(SetupError, match="unreadable-data"):
        csv_file.check(path)


@pytest.mark.parametrize("left", [0, 1, 9, 15, 23])
def test_a_gzipped_file_that_is_cut_short(left: int, tmp_path: Path) -> None:
    """Only some bytes of its one member, or none, are left."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n")[:left])
    with pytest.raises(SetupError, match="unreadable-data"):
        csv_file.check(path)


def test_records_without_rows(tmp_path: Path) -> None:
    """An empty file, a mark alone and a header alone have no rows."""
    for text in (b"", b"\xef\xbb\xbf", b"a,b", b"a,b\r\n"):
        (tmp_path / "t.csv").write_bytes(text)
        assert csv_file.check(tmp_path / "t.csv")[0] == 0
        assert csv_file.header(tmp_path / "t.csv") == (["a", "b"] if b"a" in text else [])


@pytest.mark.parametrize(
    ("text", "plain"),
    [("a,b\n1,2\n", True), ('a,b\n1,"2"\n', False), ("a,b\r\n1,2\r\n", False), ("\ufeffa,b\n1,2\n", False)],
)
def test_threads_read_only_files_in_which_every_line_is_a_record(text: str, plain: object, tmp_path: Path) -> None:
    """A quote, a CR or a byte order mark anywhere, and one thread reads the file from its beginning."""
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert csv_file.check(path) == (1, plain)
    assert Origin.of(path).check() == (1, plain)
    schema = Schema.of("t", {"a": Int(0, 9)})
    found = describe(Origin.of(path), schema, Unit(), None)
    read = RegisteredTable(Origin.of(path), found, schema, Unit(), b"").examined(Origin.of(path).check())
    assert ("parallel = true" in read.source.relation) is plain
    assert read.records == 1


def test_threads_find_the_records_that_one_thread_finds(tmp_path: Path) -> None:
    """Texts of several bytes, empty cells and long lines, over many pieces of the file that threads read."""
    path = tmp_path / "t.csv"
    lines = [f"{i},{'é' * (i % 50)},{'' if i % 3 else 'x' * (i % 900)}" for i in range(40_000)]
    path.write_text("a,b,c\n" + "\n".join(lines) + "\n", encoding="utf-8")
    assert csv_file.check(path)[1]
    total = "SELECT count(*), sum(hash(s0, s1, s2)) FROM {0}"
    found = []
    for parallel in (False, True):
        relation = files.csv_records(path, 3, places=False, parallel=parallel)
        relation = relation.replace("strict_mode", "buffer_size = 3000000, strict_mode")
        with duckdb.connect() as own:
            found.append(own.execute(total.format(relation)).fetchall())
    assert found[0] == found[1]
    assert found[0][0][0] == len(lines)
