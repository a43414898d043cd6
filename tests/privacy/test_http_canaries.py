"""Canaries, escapes and bombs over HTTP: one constant outcome of each kind, and no cell in anything that leaves."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import sulq
from sulq.answers import wire
from sulq.errors import CODES
from sulq.language.rowfn import RowFn
from tests import escapes
from tests.counts import count, generator
from tests.privacy.canaries import CANARY, NUMBER, PRICE, Door, seen, survey, watched
from tests.privacy.cases import facts_of, people
from tests.privacy.test_faults import BAD, _planned, fault_expressions

LIMIT = 5.0  # seconds a question may take in a worker: an honest one takes a hundredth of it
SOON = 60.0  # seconds beside it, on a machine that does other things; a bomb that went off would take days
SUMS = '{"kind": "Sums", "values": [%s], "where": null, "by": []}'
MARKED = {"note": f"{CANARY} {NUMBER}", "city": CANARY, "pid": CANARY}


def outcome(reply: httpx.Response) -> tuple[int, str]:
    """Status and code; anything but an answer or a refusal of ours is a fault."""
    assert reply.headers["content-type"] == "application/json", reply.text
    if reply.status_code == 200:
        return 200, ""
    error = reply.json()["error"]
    assert set(error) == {"kind", "code", "message", "remedy"}
    assert error["code"] in CODES
    assert error["remedy"]
    return reply.status_code, error["code"]


def without_numbers(tree: object) -> object:
    """An answer's form: everything but what noise and the ledger's head decide."""
    if isinstance(tree, dict):
        hidden = {"values", "seq", "entry", "stamp", "seal", "value", "spent", "remaining", "total", "receipt"}
        return {name: without_numbers(item) for name, item in tree.items() if name not in hidden}
    return [without_numbers(item) for item in tree] if isinstance(tree, list) else tree


def test_error_expressions_over_http_have_one_outcome_whatever_the_rows_T30_T31(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Some of 200 expressions that would fail on some row, all in the audit, with such rows and without (T30, T31).

    Bar: the same status, code and form; no canary in responses, pages, logs or the ledger. Control: the canaries are
    in the data, and the scan finds them there.
    """
    bad = [people("H", **(cells | MARKED))[0] for cells in BAD]
    facts = facts_of(sulq.Unit("pid", rows=len(BAD)), sulq.Epsilon(900))
    chosen: list[RowFn] = [fn for fn in fault_expressions() if _planned(fn, facts)]
    assert len(chosen) >= 200
    number = count(
        "T30 error expressions over HTTP", short=40, long=len(chosen)
    )  # test_faults asks them all, nearer by
    chosen = generator("error expressions over HTTP").sample(chosen, number)
    with watched(tmp_path, bad) as (running, door):
        for fn in chosen:
            question = sulq.Sums((fn,))
            first, second = door.ask(question, "with"), door.ask(question, "without")
            assert outcome(first) == outcome(second) == (200, "")
            assert without_numbers(first.json()) == without_numbers(second.json())
            assert len(first.headers.raw) == len(second.headers.raw)
        for dataset in ("with", "without"):
            assert door.spent(dataset) == len(chosen) * sulq.Epsilon(PRICE).exact
        pages = door.pages("with")
        assert {reply.status_code for reply in pages} == {200}, [reply.status_code for reply in pages]
        logs = [running.ask("owner", "transcript", {}, dataset="with"), running.ask("owner", "metrics", dataset=None)]
        door.heard += [json.dumps(log) for log in logs]
    told = capfd.readouterr()
    texts = {"heard": "".join(door.heard), "out": told.out, "err": told.err}
    texts |= {path.name: path.read_bytes().decode("latin-1") for path in tmp_path.glob("*.ledger")}
    assert seen(texts) == []
    assert "Traceback" not in "".join(texts.values())
    assert seen({"data": (tmp_path / "with.parquet").read_bytes().decode("latin-1")})


def test_escapes_over_http_reach_nothing_and_tell_nothing_T69_T31(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Some of 300 texts that try to get out, all in the audit, by /sql and as names and literals of /ask (T69, T31).

    Bar: 0 answers of another kind than any query's or refusal's, 0 canaries, nothing spent but for what was answered.
    Control: the file they reach for holds a canary, as the data does.
    """
    secret = tmp_path / "secret.csv"
    secret.write_text(f"a\n{escapes.CANARY}\n", encoding="utf-8")
    away = tmp_path / "away"
    away.mkdir()
    outside = escapes.Outside(str(secret), str(away), "http://127.0.0.1:9")
    whole, parts = escapes.statements(outside), escapes.texts(outside)
    assert len(whole) >= 300
    every = len(whole) // count("T69 escapes over HTTP", short=len(whole) // 3, long=len(whole))
    kinds: Counter[tuple[int, str]] = Counter()
    with watched(tmp_path, []) as (running, door):
        answered = 0
        for text in whole[::every]:
            found = outcome(door.sql(text))
            assert found[0] in {200, 400, 402}, (text, found)
            answered += found[0] == 200
            kinds[found] += 1
        for text in parts[:: 3 * every]:
            try:
                reply = door.ask(sulq.Sums((sulq.lit(1),), sulq.col("name") == text))
            except (sulq.errors.SulqError, UnicodeEncodeError):
                continue  # refused before it was sent
            found = outcome(reply)
            assert found[0] in {200, 400}, (text, found)
            answered += found[0] == 200
            kinds[found] += 1
        assert door.spent() == answered * sulq.Epsilon(PRICE).exact
        assert kinds[200, ""] >= 1  # control: those that only look odd are answered
        assert {reply.status_code for reply in door.pages()} == {200}
        door.heard.append(json.dumps(running.ask("owner", "transcript", {"limit": 1000}, dataset="people")))
    assert list(away.iterdir()) == []
    told = capfd.readouterr()
    texts = {"heard": "".join(door.heard), "out": told.out, "err": told.err}
    texts["ledger"] = (tmp_path / "people.ledger").read_bytes().decode("latin-1")
    assert seen(texts, (escapes.CANARY,)) == []
    assert "Traceback" not in "".join(texts.values())


# Bombs: each drawn at random in size, so that some are just within a limit and some past it.


def _many(draw: random.Random, most: int) -> int:
    return int(most ** draw.random()) + 1


def _sql(text: str) -> Callable[[Door], httpx.Response]:
    return lambda door: door.sql(text[: 250 * 2**10], spend=0.001)


def _tree(text: str) -> Callable[[Door], httpx.Response]:
    return lambda door: door.ask(text)


def bombs(draw: random.Random) -> Iterator[tuple[str, Callable[[Door], httpx.Response]]]:
    """Requests that are small to send and large to follow, without end."""
    one, age = (json.dumps(wire.to_json(fn)) for fn in (sulq.lit(1), sulq.col("age")))
    while True:
        n = _many(draw, 60_000)
        yield "parentheses", _sql("SELECT COUNT(*) FROM survey WHERE " + "(" * n + "age = 1" + ")" * n)
        yield "sum", _sql("SELECT COUNT(*) FROM survey WHERE " + "age + " * n + "1 > 2")
        yield "and", _sql("SELECT COUNT(*) FROM survey WHERE " + " AND ".join(f"age <> {i}" for i in range(n // 2)))
        yield "in", _sql(f"SELECT COUNT(*) FROM survey WHERE age IN ({', '.join(map(str, range(n)))})")
        yield "case", _sql("SELECT SUM(CASE " + "WHEN age > 1 THEN 1 " * n + "END) FROM survey")
        m = _many(draw, 3_000)
        yield "nest", _sql("SELECT COUNT(*) FROM (" * m + "SELECT * FROM survey" + ") AS q" * m)
        yield (
            "with",
            _sql(
                "WITH q0 AS (SELECT age FROM survey)"
                + "".join(f", q{i} AS (SELECT a.age FROM q{i - 1} a, q{i - 1} b)" for i in range(1, m))
                + f" SELECT COUNT(*) FROM q{m - 1}"
            ),
        )
        k = _many(draw, 400)
        yield "cross", _sql("SELECT COUNT(*) FROM " + ", ".join(f"survey s{i}" for i in range(k)))
        yield "join", _sql("SELECT COUNT(*) FROM survey a" + "".join(f" JOIN survey s{i} ON TRUE" for i in range(k)))
        yield "wide", _sql(f"SELECT COUNT(*) FROM survey GROUP BY {', '.join(['age', 'city', 'income'][: 1 + k % 3])}")
        yield "cube", _sql(f"SELECT COUNT(*) FROM survey GROUP BY CUBE ({', '.join(['age', 'city'] * (k // 20 + 1))})")
        yield "columns", _sql(f"SELECT {', '.join(f'SUM(age * {i})' for i in range(n // 8 + 1))} FROM survey")
        yield "like", _sql(f"SELECT COUNT(*) FROM survey WHERE name LIKE '{'%a' * n}%b'")
        yield "unions", _sql(" UNION ALL ".join(["SELECT COUNT(*) FROM survey"] * m))
        yield "power", _sql("SELECT SUM(" + "POWER(" * k + "age" + ", 9)" * k + ") FROM survey")
        yield "text", _sql("SELECT COUNT(*) FROM survey WHERE " + "UPPER(" * k + "name" + ")" * k + " = 'A'")
        yield "long", _sql("SELECT COUNT(*) FROM survey WHERE name = '" + "a" * 4 * n + "'")
        product = '{"kind": "Arith", "op": "*", "left": ' * m + age + f', "right": {age}}}' * m
        yield "deep", _tree(SUMS % f'{{"kind": "Clip", "of": {product}, "lo": 0, "hi": 1}}')
        yield "values", _tree(SUMS % ", ".join([one] * n))
        yield "together", _tree(f'{{"kind": "Together", "questions": [{", ".join([SUMS % one] * m)}]}}')


def test_bombs_die_within_their_limit_and_leave_the_service_as_it_was_T75_T76_T32(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Deep, wide, long, crossed and repeated: each ends as an answer, a refusal, or the one constant failure (T75).

    Bar: over within the limit, the next question answered, no process of the service lost but workers, in 1,000.
    Control: a question that sleeps is cut off at the limit (tests/service/supervisor/test_main.py), and the slowest
    bomb here is the longest of them all.
    """
    number = count("T75 bombs over HTTP", short=20, long=1_000)
    kinds: Counter[tuple[str, tuple[int, str]]] = Counter()
    slowest = 0.0
    failures: set[str] = set()
    with watched(tmp_path, [], limit=LIMIT, memory=3072) as (running, door):
        keep = {name: pid for name, pid in running.supervisor.pids().items() if not name.startswith("worker")}
        made = bombs(generator("bombs"))
        for _ in range(number):
            name, bomb = next(made)
            begun = time.monotonic()
            reply = bomb(door)
            slowest = max(slowest, time.monotonic() - begun)
            found = outcome(reply)
            kinds[name, found] += 1
            assert found[0] in {200, 400, 402, 413, 500, 503}, (name, found)
            if found[0] == 500:
                failures.add(reply.text)
            assert time.monotonic() - begun < LIMIT + SOON, (name, found)
            assert outcome(door.sql("SELECT COUNT(*) FROM survey")) == (200, ""), name
        assert len(failures) <= 1, failures
        assert keep.items() <= running.supervisor.pids().items()
        door.heard.append(json.dumps(running.ask("owner", "metrics", dataset=None)))
    told = capfd.readouterr()
    print(f"slowest {slowest:.1f} s; {sorted(kinds.items())}")
    assert seen({"heard": "".join(door.heard), "out": told.out, "err": told.err}) == []


def test_the_scan_finds_a_canary_T31(tmp_path: Path) -> None:
    """Control: of the data file itself."""
    path = survey(tmp_path / "people.parquet")
    assert seen({"data": path.read_bytes().decode("latin-1"), "other": "nothing"}) == [
        f"{CANARY} in data", f"{NUMBER} in data",
    ]  # fmt: skip
