"""The workloads: what is asked, of whom, on which data, at which loss.

Everywhere the same guarantee (SR23): epsilon 1 for the whole of an answer, one row added or removed (where persons
are bounded: one person with at most five rows), the same public bounds and keys; who cannot is noted.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import release_marginals, server
from benchmarks.report import Report
from benchmarks.versus import tables
from benchmarks.versus.cast import OTHERS, OURS, RAW, Contender, named
from benchmarks.versus.measure import Bench, Ended, alone, line, repeated, with_ours

QUESTIONS = ("filtered count", "sum and mean", "groups", "histogram", "person groups")
ANSWERS = ("count", "sum", "mean", "histogram")
SHARP, DRAWS = 100_000, 100_000  # rows of the table of accuracy; draws of noise
KERNEL_ROWS, MANY_ROWS = 1_000_000, 4_000_000
WIDE_ROWS = 1_500_000  # of 20 columns and 20 centres
CELLS, SCALE = 1_000_000, 1000
SIZES = (10**5, 10**6, 10**7, 10**8)
SPARK_ROWS, SPARK_ROUNDS = 2_000_000, 5
GROWN = (10**7, 10**8)  # between them time has to grow as rows do: asked in turn
MEMORY = 4 << 30
EACH, RUNS = (1, 10), 5  # labels a person of the table of open keys; answers a contender
PREPARING_SECONDS, PREPARING_ROUNDS = 1800.0, 3
SHAPES = ("declared keys", "one sum of many columns", "a copy of CSV")
SHAPED = {"keys": 1_000_000, "rows": 5_000_000, "width": 200, "wide": 1_000_000, "text": 3_000_000}
MANY = 5_000  # draws an answer: what is drawn when a contender's time is over counts


def _in(part: str) -> list[Contender]:
    return [who for who in OTHERS if part in who.parts]


def queries(bench: Bench, rows: int) -> None:
    """A: five queries."""
    path = str(tables.survey(rows))
    for question in QUESTIONS:
        told = {"part": "A", "question": question, "path": path, "declared": rows}
        with_ours(bench, ["A", question, rows], _in("A"), told)


def accuracy(bench: Bench) -> None:
    """B: errors of four answers."""
    path = str(tables.survey(SHARP))
    for question in ANSWERS:
        told = {"part": "B", "question": question, "path": path, "declared": SHARP, "draws": DRAWS, "many": MANY}
        for who in (OURS, *_in("B")):
            if bench.wants(who):
                alone(bench, ["B", question, SHARP], who, told)


def kernels(bench: Bench) -> None:
    """C: what learners ask, against the same on numbers in memory."""
    asked = [("covariance", 100, 2, KERNEL_ROWS)]
    asked += [("k-means round", 10, threads, rows) for rows in (KERNEL_ROWS, MANY_ROWS) for threads in (1, 2)]
    asked.append(("k-means round", 20, 2, WIDE_ROWS))
    for question, width, threads, rows in asked:
        centres = np.random.default_rng(2).uniform(-1, 1, (min(width, 20), width)).tolist()
        told = {
            "part": "C", "question": question, "path": str(tables.matrix(rows, width)), "width": width,
            "threads": threads, "centres": centres,
        }  # fmt: skip
        key = [] if rows == KERNEL_ROWS else [rows]
        with_ours(bench, ["C", question, threads, *key], _in("C"), told)


def marginals(bench: Bench) -> None:
    """D: all pairs of a table of ten yes-or-no columns."""
    found = release_marginals.loaded("k10")
    assert found is not None
    frame, sizes = found
    path = tables.folder() / "k10.csv"
    frame.to_csv(path, index=False)
    with_ours(bench, ["D", "pairs of k10", len(frame)], _in("D"), {"part": "D", "path": str(path), "sizes": sizes})


def noise(bench: Bench) -> None:
    """E: noise on many cells."""
    for law in ("laplace", "gaussian"):
        with_ours(bench, ["E", law, CELLS], _in("E"), {"part": "E", "question": law, "cells": CELLS, "scale": SCALE})


def service(bench: Bench) -> None:
    """F: asks a second over HTTP, every debit durable; no peer has a service of this kind."""
    key: list[object] = ["F", "asks", server.ROWS, OURS.name]
    if bench.kept.of(key) is None and bench.wants(OURS):
        with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name, server.logged(Path(name) / "log"):
            load = server.measured(Report(), Path(name), where="SQLite", ledger=lambda: None, seconds=server.SECONDS)
        bench.kept.add(line(key, scores=load.rates, p50=load.at(0.5), p99=load.at(0.99), analysts=server.ANALYSTS))


def scaling(bench: Bench, sizes: tuple[int, ...] = SIZES) -> None:
    """G: one query over more and more rows on disk, with little memory, on one processor and on two."""
    asked = {rows: _growing(rows) for rows in sizes}
    for rows, told in asked.items():
        preparing: list[object] = ["G", "prepare", rows, OURS.name]
        if bench.kept.of(preparing) is None:
            try:
                with bench.opened(OURS, told | {"anew": True}) as (child, ready):
                    bench.kept.add(line(preparing, scores=[ready["ready"]], memory=child.peak()))
            except Ended as end:
                bench.kept.add(line(preparing, outcome=end.outcome, why=end.why))
                continue
        for threads in (1, 2):
            with_ours(bench, ["G", "groups", rows, threads], [RAW], told | {"threads": threads})
    if bench.wants(OURS) and set(GROWN) <= set(sizes):
        for threads in (1, 2):
            small, large = (asked[rows] | {"threads": threads} for rows in GROWN)
            with_ours(bench, ["G", "growth", GROWN[1], threads], [OURS], small, large)


def persons(bench: Bench, sizes: tuple[int, ...] = SIZES[1:]) -> None:
    """G: a copy with at most five rows of each person, from nothing, beside peers and beside the same rows alone."""
    slow = replace(bench, seconds=PREPARING_SECONDS, rounds=PREPARING_ROUNDS)
    for rows in sizes:
        told = _growing(rows) | {"question": "preparing persons"}
        with_ours(slow, ["G", "preparing persons", rows], [RAW, named("raw Polars")], told)
        if bench.wants(OURS):
            with_ours(slow, ["G", "preparing rows", rows], [OURS], told, told | {"question": "preparing rows"})


def _growing(rows: int) -> dict[str, Any]:
    path = str(tables.survey(rows))
    return {"part": "G", "question": "groups", "path": path, "declared": rows, "memory": MEMORY}


def open_keys(bench: Bench) -> None:
    """H: groups that nobody listed, in a table of so many labels a person."""
    for each in EACH:
        told = {"part": "H", "question": "undeclared keys", "path": str(tables.labels(each)), "each": each}
        told |= {"delta": 1e-5, "runs": RUNS}
        for who in (OURS, *_in("H")):
            if bench.wants(who):
                repeated(bench, ["H", "undeclared keys", each], who, told)


def shapes(bench: Bench, sizes: Mapping[str, int] = SHAPED) -> None:
    """I: tables of other shapes than few columns and few groups."""
    for question in SHAPES:
        if question == "one sum of many columns":
            rows, path = sizes["wide"], tables.matrix(sizes["wide"], sizes["width"])
        elif question == "a copy of CSV":
            rows, path = sizes["text"], tables.text(sizes["text"])
        else:
            rows, path = sizes["rows"], tables.keys(sizes["rows"], sizes["keys"])
        told = {"part": "I", "question": question, "path": str(path), "declared": rows} | sizes
        with_ours(bench, ["I", question, rows], _in("I"), told)


def spark(bench: Bench) -> None:
    """G on Spark, if this version has that benchmark: the jobs of `benchmarks.spark`, with its own bars."""
    key: list[object] = ["G", "spark"]
    if importlib.util.find_spec("benchmarks.spark") is None or not bench.wants(OURS):
        return
    if any(known["key"][:2] == key for known in bench.kept.lines):
        return
    report = Report()
    try:
        importlib.import_module("benchmarks.spark").measured(SPARK_ROWS, SPARK_ROUNDS, report)
    except Exception as error:  # noqa: BLE001 - no Java, no pyspark, no cluster: told, and the rest goes on
        bench.kept.add(line([*key, "", OURS.name], outcome="failed", why=f"{type(error).__name__}: {error}"[:300]))
    for each in (each for lines in report.lines.values() for each in lines):
        facts = {"ours": [each.ours.median], "scores": [each.baseline.median], "bar": each.bar}
        bench.kept.add(line([*key, each.what, OURS.name], **facts))
