"""Two contenders on one question, in turn, round after round: seconds, memory, and whether the answers are right."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import Kept
from benchmarks.versus import environments
from benchmarks.versus.cast import OURS, Contender
from benchmarks.versus.child import Child, Ended

ROUNDS = 9
SECONDS = 90.0  # a peer's, for a workload
FEW = 3  # rounds; who is slow has as many of them as its seconds hold, and no more
PREPARING = 7200.0  # ours, for a prepared copy, which is made once and not timed here


class OursEnded(Exception):
    """It was our side that gave no answer."""


@dataclass
class Bench:
    """Where figures are kept, how long a contender may take, and who is wanted (all, if nobody is named)."""

    kept: Kept
    seconds: float = SECONDS
    rounds: int = ROUNDS
    only: tuple[str, ...] = ()
    log: Path | None = None
    scratch: str = field(default_factory=tempfile.gettempdir)

    def wants(self, who: Contender) -> bool:
        """Whether it is to be measured."""
        return not self.only or who.name in self.only

    @contextlib.contextmanager
    def opened(self, who: Contender, told: dict[str, Any]) -> Iterator[tuple[Child, dict[str, Any]]]:
        """Its process, ready, and what it told of itself."""
        try:
            python = environments.python(who.environment)
        except environments.Missing as why:
            raise Ended("not installed", str(why)) from None
        told = {"threads": os.cpu_count() or 1, "epsilon": 1.0, "scratch": self.scratch} | told
        with Child(python, who.script, told, log=self.log) as child:
            yield child, child.ready(PREPARING if who is OURS else self.seconds)


def line(key: list[object], **rest: object) -> dict[str, Any]:
    """One kept line: everything there is to say of a contender on a question."""
    return {"key": key, "outcome": "answered", "why": "", "load": round(os.getloadavg()[0], 1), "scores": []} | rest


def off(found: list[float], truth: list[float]) -> float:
    """How far answers lie from the exact ones: the root mean square of relative distances."""
    if len(found) != len(truth):
        return float("inf")
    a, b = np.array(found, dtype=float), np.array(truth, dtype=float)
    return float(np.sqrt(np.mean(((a - b) / np.maximum(np.abs(b), 1.0)) ** 2)))


def _asked(ours: Child, seconds: float) -> dict[str, Any]:
    try:
        return ours.ask(seconds)
    except Ended as end:
        raise OursEnded(end.outcome, end.why) from None


def beside(bench: Bench, key: list[object], who: Contender, told: dict[str, Any], ours: Child) -> dict[str, Any]:
    """A contender in turn with ours on one question; whatever becomes of it is a line."""
    known = bench.kept.of([*key, who.name])
    if known is not None:
        return known
    own: list[dict[str, Any]] = []
    mine: list[dict[str, Any]] = []
    facts: dict[str, Any] = {}
    _asked(ours, bench.seconds)
    mine.append(_asked(ours, bench.seconds))  # so that there is one, should the other never be ready
    try:
        with bench.opened(who, told) as (child, ready):
            facts = {name: ready[name] for name in ("ready", "version", "note")}
            first = child.ask(bench.seconds)
            spent = facts["first"] = first["seconds"]
            facts["off"] = off(first["values"], mine[0]["values"])
            if spent > bench.seconds / 2:
                own.append(first)
            else:  # it was the warm-up
                mine.clear()
            while len(own) < bench.rounds and spent < bench.seconds / (1 if len(own) < FEW else 3):
                mine.append(_asked(ours, bench.seconds))
                own.append(child.ask(bench.seconds))
                spent += own[-1]["seconds"]
            facts |= {"memory": child.peak(), "ours_memory": ours.peak()}
    except Ended as end:
        facts |= {"outcome": end.outcome, "why": end.why}
    times = {"scores": [each["seconds"] for each in own], "ours": [each["seconds"] for each in mine]}
    leading = {"found": [each["values"][0] for each in own], "ours_found": [each["values"][0] for each in mine]}
    return bench.kept.add(line([*key, who.name], **facts, **times, **leading))


def alone(bench: Bench, key: list[object], who: Contender, told: dict[str, Any]) -> dict[str, Any]:
    """A contender by itself, where only its answers count: all the numbers it gives within its seconds."""
    known = bench.kept.of([*key, who.name])
    if known is not None:
        return known
    found: list[float] = []
    facts: dict[str, Any] = {}
    spent = 0.0
    try:
        with bench.opened(who, told) as (child, ready):
            facts = {name: ready[name] for name in ("ready", "version", "note")}
            while len(found) < told["draws"] and spent < bench.seconds:
                answer = child.ask(bench.seconds)
                found += answer["values"]
                spent += answer["seconds"]
    except Ended as end:
        facts |= {"outcome": end.outcome, "why": end.why} if not found else {"why": end.why}
    squares = np.square(found)
    if found:
        root = float(np.sqrt(squares.mean()))
        slack = float(squares.std(ddof=1) / len(squares) ** 0.5 / (2 * max(root, 1e-300))) if len(found) > 1 else 0.0
        facts |= {"scores": [root], "slack": slack, "draws": len(found), "bias": float(np.mean(found))}
    return bench.kept.add(line([*key, who.name], **facts))


def repeated(bench: Bench, key: list[object], who: Contender, told: dict[str, Any]) -> dict[str, Any]:
    """A contender by itself, asked so many `runs` times; the first number of an answer counts, all are kept."""
    known = bench.kept.of([*key, who.name])
    if known is not None:
        return known
    answers: list[list[float]] = []
    facts: dict[str, Any] = {}
    try:
        with bench.opened(who, told) as (child, ready):
            facts = {name: ready[name] for name in ("ready", "version", "note")}
            answers += [child.ask(bench.seconds)["values"] for _ in range(told["runs"])]
    except Ended as end:
        facts |= {"outcome": end.outcome, "why": end.why}
    return bench.kept.add(line([*key, who.name], **facts, scores=[each[0] for each in answers], found=answers))


def with_ours(
    bench: Bench,
    key: list[object],
    others: list[Contender],
    told: dict[str, Any],
    theirs: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Several contenders on one question, one after the other, each in turn with the same process of ours.

    `theirs`: what they are told, where it is not the same.
    """
    wanted = [who for who in others if bench.wants(who)]
    known = [bench.kept.of([*key, who.name]) for who in wanted]
    if all(found is not None for found in known):
        return [found for found in known if found is not None]
    try:
        with bench.opened(OURS, told):
            pass  # the prepared copy is there from here on, and its making is not in the memory of who answers
        with bench.opened(OURS, told) as (ours, _ready):
            return [beside(bench, key, who, theirs or told, ours) for who in wanted]
    except (Ended, OursEnded) as end:
        outcome, why = end.args
        return [bench.kept.add(line([*key, OURS.name], outcome=outcome, why=why))]
