"""Mutated requests to the part that sees rows: refused before a row is read, or released within their debit.

Whoever sends a plan may have written anything into it, and it counts as paid for: what is certified is then run on
neighbouring tables, and the loss is worked out here, in exact fractions, from the exact inputs of the noise.
"""

from __future__ import annotations

import copy
import json
import logging
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Above, Epsilon, EpsilonDelta, Rho, SubLinear, Sums, Together, Unit, col, lit
from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.curator import certificates
from sulq.curator.run import Rows
from sulq.errors import CuratorError, QuestionError
from sulq.kernel import price
from sulq.kernel import run as kernel_run
from sulq.kernel.laws import (
    AboveLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    MetricLaw,
    Passed,
    PassedGaussianLaw,
    PassedLaplaceLaw,
    PassedLaw,
    own,
)
from sulq.kernel.mechanisms import Cost
from sulq.language.privacy import EpsilonKeys
from sulq.language.question import OpenSums
from sulq.language.relation import Join, Table
from sulq.language.rowfn import Bins, Vector
from sulq.testing.exact import all_groups, without_noise
from tests import counts

COLUMNS = {
    "rows": {"x": sulq.Int(0, 3), "f": sulq.Bool(), "g": sulq.Category(tuple("abc")), "note": sulq.Text()},
    "visits": {"z": sulq.Int(0, 4)},
}
PAIR = [(3, True, "a", "u"), (0, False, "b", "v")]
BASE = {0: PAIR, 1: [(3, True, "a", "u")] * 2, 2: [(3, True, "a", "w"), (3, True, "c", "q")], 3: PAIR, 4: PAIR}
VISITS = {0: [4, 4], 1: [4, 0], 2: [4, 4], 3: [1, 2], 4: [3, 3]}
UNITS = {
    "add_remove": (Unit("pid", rows=2), EpsilonDelta(1000, 1e-3)),
    "replace_one": (Unit("pid", rows=2, neighbors="replace_one"), EpsilonDelta(1000, 1e-3)),
    "sublinear": (Unit("pid", rows=2), SubLinear(1, 1e-6, 50)),
}
RECEIPT = Receipt(1, "entry", "plan", "mac")
Tree = Any


def tables(people: dict[int, list[tuple[object, ...]]]) -> dict[str, pa.Table]:
    """The rows of some people, and their visits."""
    rows = [(person, *row) for person, mine in people.items() for row in mine]
    visits = [(person, z) for person in people for z in VISITS[person]]
    names = ("pid", "x", "f", "g", "note")
    kinds = (pa.int64(), pa.int64(), pa.bool_(), pa.string(), pa.string())
    found = {name: pa.array([row[i] for row in rows], kinds[i]) for i, name in enumerate(names)}
    cells = {"pid": [pid for pid, _ in visits], "z": [z for _, z in visits]}
    return {"rows": pa.table(found), "visits": pa.table({n: pa.array(c, pa.int64()) for n, c in cells.items()})}


def neighbours(unit: Unit) -> list[dict[int, list[tuple[object, ...]]]]:
    """The people, and as many of them without one, or with another in that one's place."""
    found = [BASE]
    for person in (1, 2):
        if unit.neighbors == "replace_one":
            found.append(BASE | {person: [(0, False, "b", "new"), (None, None, "b", "newer")]})
        else:
            found.append({p: rows for p, rows in BASE.items() if p != person})
    return found


@dataclass
class World:
    """Neighbouring tables behind the part that sees rows, each with a note of what went into its noise."""

    unit: Unit
    rows: list[Rows] = field(default_factory=list)
    calls: list[list[tuple[object, object]]] = field(default_factory=list)
    plans: list[Tree] = field(default_factory=list)
    reads: int = 0

    def open(self, budget: object, stack: ExitStack) -> None:
        """Open the tables, and plan what is asked of the first."""
        for people in neighbours(self.unit):
            db = stack.enter_context(
                sulq.connect(tables(people), columns=COLUMNS, unit=self.unit, budget=budget, synthetic=True)
            )
            db.prepare()
            self.rows.append(self.seeing(db))
            if not self.plans:
                self.plans = [plan_of(db, *asked) for asked in questions(budget)]
                self.ledger = db._ledger

    def seeing(self, db: sulq.Database) -> Rows:
        """The part that sees rows, as another process would ask it; whatever is sent counts as paid for."""
        calls: list[tuple[object, object]] = []
        real = db._engine._cursor

        def release(law: object, exact: Any) -> np.ndarray:
            calls.append((law, exact.open().astype(object)))
            return without_noise(law, exact)

        def reveal(noise: Any, exact: Any) -> object:
            calls.append((noise, exact.open()))
            return all_groups(noise, exact)

        def cursor(connection: object) -> object:
            self.reads += 1
            return real(connection)

        db._engine._cursor = cursor
        for name in ("sums_of", "groups"):  # of the same tallies the same sums: DuckDB is asked for each once
            setattr(db._engine, name, known(getattr(db._engine, name)))
        self.calls.append(calls)
        rows = Rows(db._engine, lambda *_: True, budget=db._ledger.budget)
        return rows.replace_noise(db._ledger, release, reveal)


def known(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same answers, remembered by what was asked."""
    found: dict[str, Any] = {}

    def asked(tallies: Any) -> Any:
        text = wire.encode(tallies)
        if text not in found:
            if len(found) > 5000:
                found.clear()
            found[text] = ask(tallies)
        return found[text]

    return asked


def questions(budget: object) -> list[tuple[object, object]]:
    """What is asked, each with a spend."""
    grouped = Sums((lit(1), col("x")), by=(col("g"),), over=Table("rows"))
    some = Sums((col("x") * 2 - 1,), where=col("f"), over=Table("rows"))
    several = Sums((Vector((col("x") > 0, col("x") > 1, col("f")), 1),), over=Table("rows"))
    if isinstance(budget, SubLinear):
        return [(grouped, None), (some, None), (Together((grouped, some)), None)]
    joined = Sums((lit(1), col("x")), over=Join(Table("rows"), Table("visits"), (), person=True))
    binned = Sums((lit(1),), by=(Bins(col("x"), (0, 1, 2, 3)), col("g")), over=Table("rows"))
    listed = [grouped, some, several, joined, binned, Together((grouped, some))]
    found: list[tuple[object, object]] = [(one, spend) for one in listed for spend in (Epsilon(1), Rho(1))]
    groups = OpenSums((col("x"),), by=(col("note"),), over=Table("rows"))
    found += [
        (groups, EpsilonDelta(1, 1e-6)),
        (groups, EpsilonKeys(1, 1e-6)),
        (Above(binned, 2), Epsilon(1)),
        (Above(several, (1, 2, 3)), Rho(1)),
    ]
    return found


def plan_of(db: sulq.Database, question: object, spend: object) -> Tree:
    """What the part that sees rows reads of a plan, as a tree of JSON."""
    made = wire.to_json(db.foresee(question, spend=spend))
    return {"kind": "Plan", "parts": made["parts"], "event": made["event"]}


@pytest.fixture(scope="module")
def worlds() -> Iterator[dict[str, World]]:
    """Each relation's tables, open."""
    with ExitStack() as stack:
        found = {}
        for name, (unit, budget) in UNITS.items():
            found[name] = World(unit)
            found[name].open(budget, stack)
        yield found


# --- what is lost, from the inputs of the noise


def number(tree: Tree) -> Fraction:
    """A number of a plan, read here."""
    return Fraction(tree["value"] if isinstance(tree, dict) else tree)


def lost(first: list, second: list) -> tuple[Fraction | None, Fraction, Fraction, int]:
    """At least what a request tells of two neighbouring tables: epsilon if all is pure, rho, a delta; its numbers."""
    epsilon: Fraction | None = Fraction(0)
    rho = delta = Fraction(0)
    numbers = 0
    assert len(first) == len(second)
    for (law, a), (other, b) in zip(first, second, strict=True):
        assert law == other
        for one, mine, theirs, missing in moved(law, a, b):
            gap = [int(x) - int(y) for x, y in zip(mine, theirs, strict=True)]
            numbers += len(gap)
            pure, curved = cost(one, gap)
            epsilon = None if pure is None or epsilon is None else epsilon + pure
            rho += curved
            if missing:
                delta += missing * chance(one)
    return epsilon, rho, delta, numbers


def moved(law: Any, a: Any, b: Any) -> Iterator[tuple[Any, list, list, int]]:
    """The inputs of each draw on both tables, and how many groups only one of them has."""
    if not isinstance(law, tuple):
        yield law, a.ravel().tolist(), b.ravel().tolist(), 0
        return
    keys = [list(zip(*side.keys, strict=True)) for side in (a, b)]
    both = [key for key in keys[0] if key in keys[1]]
    one_sided = len(set(keys[0]) ^ set(keys[1]))
    columns = [np.column_stack([side.persons, side.sums]) for side in (a, b)]
    shared = [np.array([c[own.index(k)] for k in both]) for c, own in zip(columns, keys, strict=True)]
    start = 0
    for item in law:
        sides = [s[:, start : start + item.width].ravel().tolist() if both else [] for s in shared]
        yield item.law, *sides, one_sided if isinstance(item.law, Passed) else 0
        start += item.width


def cost(law: Any, gap: list[int]) -> tuple[Fraction | None, Fraction]:
    """What one draw loses whose inputs moved so: epsilon, if there is one, and rho."""
    rise, fall = max(0, *gap, 0), max(0, *(-move for move in gap), 0)
    if isinstance(law, (LaplaceLaw, PassedLaplaceLaw)):
        pure = sum(map(abs, gap)) / law.scale
    elif isinstance(law, (GaussianLaw, PassedLaw, PassedGaussianLaw)):
        return (None if any(gap) else Fraction(0)), sum(move * move for move in gap) / (2 * law.scale**2)
    elif isinstance(law, AboveLaw):
        shared = max(rise, fall) / law.threshold_scale + (rise + fall) / law.scale if law.threshold_scale else None
        pure = sum(map(abs, gap)) / law.scale if shared is None else shared
    elif isinstance(law, FlipLaw):
        pure = (rise + fall) / law.scale
    elif isinstance(law, (ExponentialLaw, MetricLaw)):
        pure = (rise + fall) / law.scale / 2
    else:  # binomial: counted by queries alone
        return None, Fraction(0)
    return pure, pure**2 / 2


def chance(law: Passed) -> Fraction:
    """At least the chance that the noise is the threshold or more."""
    width, threshold = float(law.scale), law.threshold
    if isinstance(law, PassedLaplaceLaw):
        far = min(threshold, int(40 * width) + 2)
        mass = math.fsum(math.exp(-abs(z) / width) for z in range(-far, far + 1))
        return Fraction(math.exp(-threshold / width) / mass) * Fraction(999_999, 1_000_000)
    beyond = 1 if isinstance(law, PassedGaussianLaw) else int(40 * width) + 2  # no noise is past the end
    terms = [math.exp(-(z * z) / (2 * width * width)) for z in range(threshold, threshold + beyond)]
    mass = 1 + 2 * sum(math.exp(-(z * z) / (2 * width * width)) for z in range(1, int(40 * width) + 2))
    return Fraction(math.fsum(terms) / mass) * Fraction(999_999, 1_000_000)


# --- mutations


def places(tree: Tree, path: tuple = ()) -> Iterator[tuple]:
    """The paths to all parts of a tree."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, item in items:
        yield from places(item, (*path, name))


def at(tree: Tree, path: tuple) -> Tree:
    for name in path:
        tree = tree[name]
    return tree


def put(tree: Tree, path: tuple, new: Tree) -> Tree:
    """A tree with another part; only what lies on the way is copied."""
    if not path:
        return new
    made = copy.copy(tree)
    made[path[0]] = put(tree[path[0]], path[1:], new)
    return made


ODD: list[Tree] = [
    None, True, False, 0, 1, -1, 2, 64, 2**31, 2**62, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, "", "x",
    "rows", "visits", "laplace", "gaussian", "l1", "l2", "replace_one", "add_remove", [], {}, [[]], [None],
    {"kind": "Lit"},
    {"kind": "fraction", "value": "1/3"}, {"kind": "fraction", "value": "1/1024"}, {"kind": "fraction", "value": "0/1"},
    {"kind": "fraction", "value": "-7/1"}, {"kind": "fraction", "value": "1125899906842624/1"},
    {"kind": "fraction", "value": "1/0"}, {"kind": "array", "shape": [2], "type": "i", "values": [1, 2]},
    {"kind": "array", "shape": [10**12], "type": "f", "values": []}, "\x00", "\ud800", "o", "text0", "'; --", {"a": 1},
]  # fmt: skip
RATIOS = [
    Fraction(1, 1024),
    Fraction(1, 9),
    Fraction(1, 2),
    Fraction(9, 10),
    Fraction(999, 1000),
    Fraction(0),
    Fraction(-1),
]
RATIOS += [Fraction(1001, 1000), Fraction(2), Fraction(100)]


def fraction(value: Fraction) -> Tree:
    return {"kind": "fraction", "value": f"{value.numerator}/{value.denominator}"}


def times(tree: Tree, ratio: Fraction) -> Tree:
    """A number of a plan, changed."""
    if isinstance(tree, dict) and tree.get("kind") == "fraction":
        return fraction(number(tree) * ratio)
    return int(tree * ratio) if type(tree) is int else tree


def odd(random: Random, tree: Tree, paths: list, _donor: Tree) -> Tree:
    """Something else in any place."""
    return put(tree, random.choice(paths), random.choice(ODD))


def tweaked(random: Random, tree: Tree, paths: list, _donor: Tree) -> Tree:
    """Another number."""
    path = random.choice(paths)
    old = at(tree, path)
    if type(old) is int and random.random() < 0.5:
        return put(tree, path, random.choice([old + 1, old - 1, -old, old * 2, old * 10**9, 2 ** random.randrange(70)]))
    if isinstance(old, list) and old:
        return put(tree, path, random.choice([old[1:], old[:-1], old * 2, [*old, old[0]], old[::-1], [old]]))
    if isinstance(old, dict):
        name = random.choice(sorted(old))
        left = {key: item for key, item in old.items() if key != name}
        return put(tree, path, random.choice([left, old | {"more": 1}, old | {name: None}]))
    return put(tree, path, times(old, random.choice(RATIOS)))


def grafted(random: Random, tree: Tree, paths: list, donor: Tree) -> Tree:
    """A part of another plan, or of this one, where one of its kind stood."""
    path = random.choice(paths)
    old = at(tree, path)
    kind = old.get("kind") if isinstance(old, dict) else path[-1:]
    same = []
    for other in places(donor):
        new = at(donor, other)
        if (new.get("kind") if isinstance(new, dict) else other[-1:]) == kind:
            same.append(new)
    return put(tree, path, random.choice(same)) if same else put(tree, path, random.choice(ODD))


def nested(random: Random, tree: Tree, paths: list, _donor: Tree) -> Tree:
    """A part within many brackets, or much arithmetic."""
    path = random.choice(paths)
    inner, brackets = at(tree, path), random.random() < 0.5
    for _ in range(random.choice([1, 5, 150, 250] if brackets else [1, 2, 5, 12])):
        two = {"kind": "Lit", "value": 2}
        inner = [inner] if brackets else {"kind": "Arith", "op": random.choice("+-*/"), "left": inner, "right": two}
    return put(tree, path, inner)


def cheaper(random: Random, tree: Tree, _paths: list, _donor: Tree) -> Tree:
    """Less paid, or less said of what a person does."""
    event = dict(tree["event"])
    for name in random.sample(["epsilon", "rho", "key_delta", "queries"], random.choice([1, 1, 2])):
        event[name] = (
            times(event.get(name), random.choice(RATIOS)) if event.get(name) is not None else random.choice(ODD)
        )
    if random.random() < 0.3:
        event["queries"] = random.choice([1, 3, 100])
    return tree | {"event": event}


def quieter(random: Random, tree: Tree, _paths: list, _donor: Tree) -> Tree:
    """Other noise, in the law and in its draw alike."""
    parts, event = copy.deepcopy(tree["parts"]), copy.deepcopy(tree["event"])
    draws = iter(event["draws"])
    ratio, moves = random.choice(RATIOS[:5]), random.random() < 0.5
    other = random.choice(LAWS) if random.random() < 0.5 else None
    for part in parts:
        laws = [part["laws"]] if part["people"] is None else [[part["people"]], part["laws"]]
        for several in laws:
            for i, law in enumerate(several):
                draw = next(draws)
                if random.random() < 0.7:
                    made, change = law, {}
                    if other is not None and law["kind"] in ("LaplaceLaw", "GaussianLaw"):
                        made, change = other(law["scale"])
                    elif "scale" in law:
                        scale = times(law["scale"], ratio)
                        made, change = law | {"scale": scale}, {"scale": scale}
                    several[i] = made
                    draw.update(change)
                    if moves:
                        draw["sensitivity"] = times(draw["sensitivity"], random.choice([ratio, ratio**2]))
            if several is not part["laws"]:
                part["people"] = several[0]
    return tree | {"parts": parts, "event": event}


COINS = {"kind": "fraction", "value": "64/1"}
LAWS: list[Callable[[Tree], tuple[Tree, Tree]]] = [
    lambda s: ({"kind": "LaplaceLaw", "scale": s}, {"mechanism": "laplace", "norm": "l1"}),
    lambda s: ({"kind": "GaussianLaw", "scale": s}, {"mechanism": "gaussian", "norm": "l2"}),
    lambda s: ({"kind": "FlipLaw", "scale": s, "candidates": 3}, {"mechanism": "permute_and_flip", "norm": "l1"}),
    lambda s: ({"kind": "ExponentialLaw", "scale": s, "candidates": 3}, {"mechanism": "exponential", "norm": "l2"}),
    lambda s: ({"kind": "MetricLaw", "scale": s, "candidates": 3}, {"mechanism": "metric", "norm": "l1"}),
    lambda s: ({"kind": "BitLaw", "scale": s}, {"mechanism": "bits", "norm": "l1"}),
    lambda _: ({"kind": "BinomialLaw", "coins": 64}, {"mechanism": "binomial", "norm": "l1", "scale": COINS}),
    lambda s: (
        {"kind": "AboveLaw", "scale": s, "threshold_scale": fraction(Fraction(0)), "sums": 1},
        {"mechanism": "above", "norm": "l1"},
    ),
    lambda s: (
        {"kind": "PassedLaw", "scale": s, "threshold": 3},
        {"mechanism": "passed", "norm": "l2", "threshold": 3},
    ),
    lambda s: (
        {"kind": "PassedGaussianLaw", "scale": s, "threshold": (least := math.ceil(number(s)))},
        {"mechanism": "passed_gaussian", "norm": "l2", "threshold": least},
    ),
    lambda s: (
        {"kind": "PassedLaplaceLaw", "scale": s, "threshold": (least := math.ceil(number(s)))},
        {"mechanism": "passed_laplace", "norm": "l1", "threshold": least},
    ),
]  # fmt: skip


def rearranged(random: Random, tree: Tree, _paths: list, donor: Tree) -> Tree:
    """Parts repeated, exchanged or put together from others, with draws of their own or without."""
    parts, event = list(tree["parts"]), dict(tree["event"])
    i = random.randrange(len(parts))
    part = dict(parts[i])
    way = random.randrange(8)
    if way == 0:
        parts.append(parts[i])
        event["draws"] = list(event["draws"]) * random.choice([1, 2])
    elif way == 1:
        parts.append(random.choice(donor["parts"]))
        event["draws"] = [*event["draws"], *donor["event"]["draws"]]
    elif way == 2:
        part["tally"] = random.choice(donor["parts"])["tally"]
    elif way == 3:
        part["refine"] = [random.choice([0, 1, 5, 40, 63, 70, -1])] * len(part["refine"])
    elif way == 4:
        part["thresholds"] = random.choice([[0], [1, 2], None, [2**70], []])
    elif way == 5:
        source = random.choice(donor["parts"])
        for name in random.sample(["people", "score", "thresholds", "whole", "laws"], 2):
            part[name] = source[name]
    elif way == 6:
        part["tally"] = part["tally"] | {"cells": random.choice([0, 1, 2, 10**9, -3])}
    else:
        tally = part["tally"]
        part["tally"] = tally | {"over": random.choice(donor["parts"])["tally"]["over"]}
    if way > 1:
        parts[i] = part
    return tree | {"parts": parts, "event": event}


def spoiled(random: Random, text: str) -> str:
    """Another text: a part cut out or given twice, or what JSON's readers take differently."""
    place = random.randrange(len(text))
    end = place + random.choice([1, 1, 3, 30])
    new = random.choice(
        [
            "",
            "NaN",
            "Infinity",
            "1e999",
            '"kind":"Plan",',
            "{",
            "]",
            "\\u0000",
            "\ud83d",
            "9" * 500,
            text[place:end] * 2,
        ]
    )
    return text[:place] + new + text[end:]


MUTATORS = [odd, tweaked, tweaked, grafted, grafted, nested, cheaper, cheaper, quieter, quieter, rearranged, rearranged]


def mutated(random: Random, plans: list[tuple[Tree, list]]) -> str:
    """The text of a plan that nobody drew."""
    tree, paths = random.choice(plans)
    for i in range(random.choice([1, 1, 1, 2, 3])):
        donor = random.choice(plans)[0]
        if i:
            paths = list(places(tree))
        try:
            tree = random.choice(MUTATORS)(random, tree, paths, donor)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError, ValueError):
            if not i:  # of a plan as it was drawn every mutation can be made; of one that is mutated already not each
                raise
    text = json.dumps(tree)
    return spoiled(random, text) if random.random() < 0.05 else text


# --- what becomes of one


def fate(world: World, text: str) -> str:
    """How a request ended: "refused", or "released" within its debit; anything else fails."""
    reads = world.reads
    try:
        world.rows[0].check_text(text)
    except QuestionError as error:
        return "refused" if error.code == "uncertified" and world.reads == reads else f"{error.code}, rows read"
    assert world.reads == reads
    for rows, calls in zip(world.rows, world.calls, strict=True):
        calls.clear()
        rows.run_text(text, replace(RECEIPT, plan=wire.digest_of(text)))
    event = json.loads(text)["event"]
    for other in world.calls[1:]:
        epsilon, rho, delta, numbers = lost(world.calls[0], other)
        if event.get("queries"):
            assert numbers <= event["queries"], f"{numbers} numbers for {event['queries']} queries"
            continue
        if event["epsilon"] is not None:
            assert epsilon is not None and epsilon <= number(event["epsilon"]), f"{epsilon} for {event}"  # noqa: PT018
        assert rho <= number(event["rho"]), f"rho {float(rho)} for {event}"
        assert delta <= number(event.get("key_delta", 0)), f"delta {float(delta)} for {event}"
    return "released"


def tried(worlds: dict[str, World], random: Random, much: int) -> dict[str, int]:
    """How many requests ended in which way."""
    found = {"refused": 0, "released": 0}
    known = [(world, [(plan, list(places(plan))) for plan in world.plans]) for world in worlds.values()]
    logging.disable(logging.CRITICAL)  # each refusal of what is no plan is a line
    try:
        for done in range(much):
            world, plans = known[done % len(known)]
            text = mutated(random, plans)
            try:
                found[fate(world, text)] += 1
            except BaseException:
                print(text)
                raise
    finally:
        logging.disable(logging.NOTSET)
    return found


def test_what_is_planned_is_released_within_its_debit(worlds: dict[str, World]) -> None:
    """Control of what follows: without a mutation every plan is certified and run."""
    for world in worlds.values():
        assert [fate(world, json.dumps(plan)) for plan in world.plans] == ["released"] * len(world.plans)


def test_mutated_requests_are_refused_or_released_within_their_debit(worlds: dict[str, World]) -> None:
    """Whatever is sent: a refusal with its code before any row is read, or noise that its debit pays for; nothing else.

    Nothing is spent: the ledger is not even asked. Control: both happen, and most mutants are refused; and what a
    careless check would let through is found out (`test_a_careless_check_is_found_out`).
    """
    much = counts.count("mutated requests to the part that sees rows", short=500, long=100_000)
    found = tried(worlds, counts.generator("mutated requests"), much)
    assert found["refused"] > much // 2
    assert found["released"] > much // 50
    assert all(world.ledger.totals.events == 0 for world in worlds.values())


@pytest.mark.parametrize("careless", ["free", "foreign"])
def test_a_careless_check_is_found_out(
    worlds: dict[str, World], monkeypatch: pytest.MonkeyPatch, careless: str
) -> None:
    """Control: where losses are not compared with the debit, or parts are not looked at, the same requests fail."""
    if careless == "free":
        monkeypatch.setattr(price, "_cost", lambda *_, **__: Cost(Fraction(0), Fraction(0)))
    else:
        monkeypatch.setattr(certificates, "_formed", lambda *_: None)
        monkeypatch.setattr(kernel_run, "_formed", lambda asked, **_: replace(asked, laws=tuple(map(own, asked.laws))))
    with pytest.raises((AssertionError, CuratorError, LookupError, TypeError, ValueError)):
        tried(worlds, Random("careless 7"), 2000)  # a seed by which it is found out soon
