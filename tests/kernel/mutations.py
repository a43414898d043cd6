"""Mutations of requests: of any part, by its place alone, so that they know no class of a request by its fields.

A mutant is built past the checks of its classes, as nobody could who sends a text: the kernel is to refuse it itself.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from sulq.kernel.facts import Draw, Event
from sulq.kernel.laws import (
    BESIDE,
    AboveLaw,
    BinomialLaw,
    BitLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    MetricLaw,
    PassedGaussianLaw,
    PassedLaplaceLaw,
    PassedLaw,
)
from sulq.kernel.scores import Rank, Weighted
from tests.kernel.asked import Request, World, names, parts, with_part

Path = tuple[Any, ...]
OUTSIDE = {"bounds", "functions", "whole"}  # what the curator vouches for where no text is certified
LISTED = {"Aggregated", "Declared", "HeavyPersons"}  # statistics whose rows are listed for their own numbers


@dataclass(eq=False)
class Subject:
    """A request and the paths to its parts."""

    request: Request
    paths: list[Path]

    @functools.cached_property
    def text(self) -> str:
        return repr(self.request)

    @classmethod
    def of(cls, request: Request) -> Subject:
        return cls(request, list(paths(request)))


def paths(node: object, path: Path = ()) -> Iterator[Path]:
    """The paths to all parts of a request, but for what no request states."""
    if path:
        yield path
    for name, item in stated(node):
        yield from paths(item, (*path, name))


def stated(node: object) -> list[tuple[Any, Any]]:
    """What a request states in a part."""
    outside = type(node).__name__ == "Outside"
    return [(name, item) for name, item in parts(node) if not (outside and name in OUTSIDE)]


def rebuilt(node: Any) -> Any:
    """The same, as its classes build it: what they refuse is refused."""
    if type(node) is tuple:
        return tuple(map(rebuilt, node))
    inner = parts(node)
    return type(node)(*(rebuilt(item) for _, item in inner)) if inner else node


def at(node: Any, path: Path) -> Any:
    for name in path:
        node = node[name] if type(node) is tuple else getattr(node, name)
    return node


def put(node: Any, path: Path, new: Any) -> Any:
    """A request with another part; only what lies on the way is made anew."""
    if not path:
        return new
    part = node[path[0]] if type(node) is tuple else getattr(node, path[0])
    return with_part(node, path[0], put(part, path[1:], new))


@dataclass(eq=False)
class Material:
    """What mutants of a world's requests are made of."""

    subjects: list[Subject]
    pools: dict[object, list[Any]]
    texts: list[str]


_materials: WeakKeyDictionary[World, Material] = WeakKeyDictionary()


def _material(world: World) -> Material:
    """Looked through once for each world: every test makes mutators of all worlds."""
    if world not in _materials:
        made = Material([Subject.of(request) for request in world.requests], {}, [])
        for subject in made.subjects:
            for path in subject.paths:
                found = at(subject.request, path)
                if type(found) is str and found.startswith("SELECT"):
                    made.texts.append(found)
                for key in _kinds(found, path):
                    made.pools.setdefault(key, []).append(found)
        _materials[world] = made
    return _materials[world]


class Mutators:
    """Changes requests of one world, by parts of its own and of others."""

    def __init__(self, world: World, others: list[World], random: Random, about: str = "", way: str = "") -> None:
        """`about`: what requests say that are changed. `way`: the one way in which they are, if not all."""
        self.random = random
        self.subjects = [each for each in _material(world).subjects if about in each.text]
        self.pools: dict[object, list[Any]] = {}
        self.texts: list[str] = []
        for material in map(_material, (world, *others)):
            self.texts += material.texts
            for key, found in material.pools.items():
                self.pools.setdefault(key, []).extend(found)
        weighted: dict[Callable[..., Request], int] = {
            self.odd: 3, self.tweaked: 4, self.grafted: 4, self.consistent: 4, self.relawed: 2, self.paid: 4,
            self.rearranged: 3, self.reworded: 3, self.counted: 2, self.scored: 1, self.annexed: 1,
        }  # fmt: skip
        self.ways = [each for each, times in weighted.items() for _ in range(times) if way in ("", each.__name__)]

    def mutant(self) -> tuple[Request, str]:
        """A request that nobody made, and how it was changed."""
        subject = self.random.choice(self.subjects)
        request, said = subject.request, []
        for i in range(self.random.choice((1, 1, 1, 2, 3))):
            if i:
                subject = Subject.of(request)
            way = self.random.choice(self.ways)
            try:
                request = way(subject)
            except Exception:
                if not i:  # of an honest request every change can be made; of a mutant not each
                    raise
            said.append(way.__name__)
        return request, " ".join(said)

    def odd(self, subject: Subject) -> Request:
        """Something else in any place."""
        return put(subject.request, self.random.choice(subject.paths), self.random.choice(STRANGE))

    def tweaked(self, subject: Subject) -> Request:
        """A number, a text or a tuple a little changed."""
        path = self.random.choice(subject.paths)
        return put(subject.request, path, self.other(at(subject.request, path)))

    def other(self, old: Any) -> Any:
        """A value much like another."""
        draw = self.random
        if type(old) is int:
            near = [old + 1, old - 1, -old, old * 2, old // 2, 0, 1, 2 ** draw.randrange(70), old * 10**9]
            return draw.choice([*near, bool(old), float(old), np.int64(old % 2**63), str(old), Fraction(old)])
        if type(old) is Fraction:
            return draw.choice([old * draw.choice(RATIOS), -old, 1 / old if old else 1, float(old), np.float64(old)])
        if type(old) is bool:
            return draw.choice([not old, int(old), None])
        if type(old) is float:
            return draw.choice([-old, old * 2, old / 2, math.nan, math.inf, 0.0, 2.0**60, int(old)])
        if type(old) is bytes:
            place = draw.randrange(len(old) + 1)
            whole = draw.choice((1, -1, 7, 2**21, -(2**40), 2**62)).to_bytes(8, "little", signed=True)
            return draw.choice(
                [old[:-1], old * 2, old[8:], old[:place] + b"\1" + old[place + 1 :], whole + old[8:], b""]
            )
        if type(old) is tuple:
            if not old:
                return draw.choice([(0,), (None,), ((),), [], 0])
            i = draw.randrange(len(old))
            changed = (*old[:i], self.other(old[i]), *old[i + 1 :])
            without = (*old[:i], *old[i + 1 :])
            return draw.choice(
                [without, old * 2, (*old, old[i]), old[::-1], (old,), changed, changed, list(old), old[i]]
            )
        if type(old) is str:
            return self.text(old)
        if old is None:
            return draw.choice([0, 1, 2, (), "", (0,), Fraction(1)])
        inner = stated(old)
        if not inner:
            return draw.choice(STRANGE)
        name, part = draw.choice(inner)
        return with_part(old, name, self.other(part))

    def grafted(self, subject: Subject) -> Request:
        """A part of another request, or of this one, where one of its kind stood."""
        path = self.random.choice(subject.paths)
        pool = self.pools.get(self.random.choice(_kinds(at(subject.request, path), path)), STRANGE)
        return put(subject.request, path, self.random.choice(pool))

    def consistent(self, subject: Subject) -> Request:
        """One number or text changed alike wherever it stands: a scale in its law and in its draw, a size, a name."""
        numbers = [p for p in subject.paths if type(at(subject.request, p)) in (Fraction, int, str)]
        scales = [p for p in numbers if p[-1] in ("scale", "sensitivity", "threshold", "level", "threshold_scale")]
        old = at(subject.request, self.random.choice(scales if scales and self.random.random() < 0.6 else numbers))
        new = old * self.random.choice(RATIOS) if type(old) is Fraction else self.other(old)
        request = subject.request
        for path in numbers:
            found = at(request, path)
            if type(found) is type(old) and found == old:
                request = put(request, path, new)
        return request

    def relawed(self, subject: Subject) -> Request:
        """Noise of another law, in the release and in its draw."""
        request = subject.request
        laws = [p for p in subject.paths if getattr(at(request, p), "kind", None) in MECHANISMS]
        draws = [p for p in subject.paths if type(at(request, p)) is Draw]
        if not laws:
            return self.paid(subject)
        if any(at(request, path).kind in BESIDE for path in laws) and self.random.random() < 0.5:
            return exchanged(request, self.random.choice(RATIOS[:8]))
        i = self.random.randrange(len(laws))
        scale = getattr(at(request, laws[i]), "scale", Fraction(8))
        law, norm = self.random.choice(LAWS)(scale * self.random.choice(RATIOS[:8]))
        request = put(request, laws[i], law)
        if i < len(draws) and self.random.random() < 0.9:
            old = at(request, draws[i])
            changes = {"mechanism": law.kind, "scale": getattr(law, "scale", Fraction(64)), "norm": norm}
            changes |= {"threshold": getattr(law, "threshold", None)}
            if self.random.random() < 0.5:
                changes["sensitivity"] = old.sensitivity ** self.random.choice((1, 2))
            for name, new in changes.items():
                request = put(request, (*draws[i], name), new)
        return request

    def paid(self, subject: Subject) -> Request:
        """Another event: less or more of something, of the whole or of a draw; or that of another request."""
        releases, event = subject.request
        if self.random.random() < 0.1:
            return releases, self.random.choice(self.pools[Event])
        for name in self.random.sample(("epsilon", "rho", "key_delta", "queries", "draws"), self.random.choice((1, 2))):
            old = getattr(event, name)
            if name == "draws":
                new: Any = self._drawn(old)
            elif name == "queries":
                new = self.random.choice((0, 1, 3, 6, 100))
            else:
                new = Fraction(1) if old is None else old * self.random.choice(RATIOS)
                new = None if self.random.random() < 0.1 else new
            event = with_part(event, name, new)
        return releases, event

    def _drawn(self, draws: tuple[Draw, ...]) -> tuple[Draw, ...]:
        """Draws that record something else."""
        if not draws:
            return draws
        i = self.random.randrange(len(draws))
        if self.random.random() < 0.3:
            return self.random.choice([draws[:i] + draws[i + 1 :], draws * 2, draws[::-1]])
        name, old = self.random.choice(parts(draws[i]))
        new = old * self.random.choice(RATIOS) if type(old) is Fraction else self.other(old)
        return (*draws[:i], with_part(draws[i], name, new), *draws[i + 1 :])

    def rearranged(self, subject: Subject) -> Request:
        """Releases repeated, exchanged or put together from other requests, with their draws or without."""
        releases, event = subject.request
        other = self.random.choice(self.subjects).request
        i, j = self.random.randrange(len(releases)), self.random.randrange(len(other[0]))
        way = self.random.randrange(6)
        if way == 0:
            releases, event = releases * 2, with_part(event, "draws", event.draws * self.random.choice((1, 2)))
        elif way == 1:
            releases, event = (*releases, *other[0]), with_part(event, "draws", (*event.draws, *other[1].draws))
            if self.random.random() < 0.5 and type(event.rho) is type(other[1].rho) is Fraction:
                event = with_part(event, "rho", event.rho + other[1].rho)
                pure = (event.epsilon, other[1].epsilon)
                event = with_part(event, "epsilon", None if None in pure else sum(pure))
                if type(event.key_delta) is type(other[1].key_delta) is Fraction:
                    event = with_part(event, "key_delta", event.key_delta + other[1].key_delta)
        elif way == 2:
            name = self.random.choice([name for name, _ in parts(releases[i])])
            releases = put(releases, (i, name), getattr(other[0][j], name))
        elif way == 3:
            releases = (*releases[:i], other[0][j], *releases[i + 1 :])
        elif way == 4:
            return (releases[i],), event
        else:
            return other[0], event
        return releases, event

    def counted(self, subject: Subject) -> Request:
        """Other whole numbers in one of the request's records: keys, weights, places, sizes, bits."""
        whole = [p for p in subject.paths if type(at(subject.request, p)) is int]
        if not whole:
            return self.tweaked(subject)
        path = self.random.choice(whole)
        old = at(subject.request, path)
        return put(subject.request, path, self.random.choice((old + 1, old - 1, 0, 1, 2, 3, 5, -1, old * 3, 2**20)))

    def scored(self, subject: Subject) -> Request:
        """Another score, or other numbers in one."""
        held = [p for p in subject.paths if type(at(subject.request, p)) in (Rank, Weighted)]
        if not held:
            return self.grafted(subject)
        path = self.random.choice(held)
        old = at(subject.request, path)
        other = [score for kind in (Rank, Weighted) for score in self.pools.get(kind, ())]
        return put(subject.request, path, self.random.choice((self.other(old), self.other(self.random.choice(other)))))

    def annexed(self, subject: Subject) -> Request:
        """Another statistic of the whole table, of other numbers, as its class allows."""
        for i, release in enumerate(subject.request[0]):
            whole = getattr(getattr(release, "source", None), "whole", None)
            if whole is None or type(whole.statistic).__name__ in LISTED:
                continue
            try:
                return put(subject.request, (0, i, "source", "whole"), rebuilt(self.other(whole)))
            except Exception:  # noqa: BLE001 - no such statistic
                continue
        return self.paid(subject)

    def reworded(self, subject: Subject) -> Request:
        """Another statement."""
        texts = [p for p in subject.paths if type(t := at(subject.request, p)) is str and t.startswith("SELECT")]
        if not texts:
            return self.tweaked(subject)
        path = self.random.choice(texts)
        return put(subject.request, path, self.text(at(subject.request, path)))

    def text(self, old: str) -> str:
        """Another text; of a statement one with a few tokens, spans or clauses changed."""
        draw = self.random
        if not old.startswith("SELECT"):
            words = ("", "o", "x", "l1", "l2", "laplace", "gaussian", "add_remove", "replace_one", "zero_out", "kept0")
            return draw.choice((*words, old * 2, old[1:], "\ud800", "'; --"))
        for _ in range(draw.choice((1, 1, 2))):
            old = draw.choice(WORDINGS)(draw, old, draw.choice(self.texts))
        return old


def _kinds(value: Any, path: Path) -> list[object]:
    """What a part may be exchanged with: parts of its class, and parts of its name."""
    kind = type(value)
    named = next((name for name in reversed(path) if isinstance(name, str)), "")
    return [kind, named, (kind, named)] if kind not in (int, str, tuple, type(None)) else [named, (kind, named)]


class Whole(int):
    """A whole number of another class."""


class Half(Fraction):
    """A fraction of another class, that says it is less than anything."""

    def __gt__(self, _: object) -> bool:
        return False

    def __lt__(self, _: object) -> bool:
        return True


RATIOS = [Fraction(1, 1024), Fraction(1, 9), Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000), Fraction(1001, 1000),
          Fraction(2), Fraction(100), Fraction(0), Fraction(-1)]  # fmt: skip
STRANGE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 64, 2**31, 2**62, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, math.nan,
    math.inf, -math.inf, "", "x", "laplace", "l2", "replace_one", "\ud800", b"", b"12345678", (), ((),), (None,), [],
    {}, [0], Fraction(0), Fraction(1, 3), Fraction(-7), Fraction(2**60), Fraction(1, 2**60), Decimal(1), Decimal("NaN"),
    np.int64(1), np.int64(2**62), np.float64(1.0), np.float64("nan"), np.bool_(True), np.arange(2), int, len, object(),
    Whole(1), Half(10**6), 1 + 2j, "SELECT 1", "count",
]  # fmt: skip
LAWS: list[Callable[[Fraction], tuple[Any, str]]] = [
    lambda s: (forged(LaplaceLaw, s), "l1"),
    lambda s: (forged(GaussianLaw, s), "l2"),
    lambda s: (forged(FlipLaw, s, 3), "l1"),
    lambda s: (forged(ExponentialLaw, s, 3), "l2"),
    lambda s: (forged(MetricLaw, s, 3), "l1"),
    lambda s: (forged(BitLaw, s), "l1"),
    lambda _: (forged(BinomialLaw, 64), "l1"),
    lambda s: (forged(AboveLaw, s, Fraction(0), 1), "l1"),
    lambda s: (forged(AboveLaw, s, s, 12), "l1"),
    lambda s: (forged(PassedLaw, s, 3), "l2"),
    lambda s: (forged(PassedGaussianLaw, s, math.ceil(s)), "l2"),
    lambda s: (forged(PassedGaussianLaw, s, math.ceil(7 * s)), "l2"),
    lambda s: (forged(PassedLaplaceLaw, s, math.ceil(s)), "l1"),
    lambda s: (forged(PassedLaplaceLaw, s, math.ceil(20 * s)), "l1"),
]
MECHANISMS = {law.kind for law in (LaplaceLaw, GaussianLaw, FlipLaw, ExponentialLaw, MetricLaw, BitLaw, BinomialLaw,
                                   AboveLaw, PassedLaw, PassedGaussianLaw, PassedLaplaceLaw)}  # fmt: skip


def forged(kind: type, *given: Any) -> Any:
    """A value whose class was not asked whether it allows it."""
    made = object.__new__(kind)
    for name, value in zip(names(kind), given, strict=True):
        object.__setattr__(made, name, value)
    return made


EXCHANGED: dict[str, Callable[[Fraction], tuple[Any, str]]] = {
    "laplace": lambda s: (forged(GaussianLaw, s), "l2"),
    "gaussian": lambda s: (forged(LaplaceLaw, s), "l1"),
    "passed_laplace": lambda s: (forged(PassedGaussianLaw, s, math.ceil(7 * s)), "l2"),
    "passed_gaussian": lambda s: (forged(PassedLaplaceLaw, s, math.ceil(20 * s)), "l1"),
}


def exchanged(request: Request, ratio: Fraction = Fraction(1)) -> Request:
    """Groups hidden by the other law, on people and on sums, in the release and in its draws; nothing else pays."""
    places = [(i, j) for i, release in enumerate(request[0]) for j in range(len(release.laws))]
    for drawn, (i, j) in enumerate(places):
        old = at(request, (0, i, "laws", j))
        law, norm = EXCHANGED[old.kind](old.scale * ratio)
        changes = {"mechanism": law.kind, "norm": norm, "scale": law.scale}
        changes["threshold"] = getattr(law, "threshold", None)
        request = put(request, (0, i, "laws", j), law)
        for name, new in changes.items():
            request = put(request, (1, "draws", drawn, name), new)
    return put(request, (1, "epsilon"), None)


# Statements

TOKEN = re.compile(r"'[^']*'|\$?[a-zA-Z_][a-zA-Z0-9_.]*|[0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?|<=|>=|<>|[-+*/%<>=(),]")
SWAPS = {
    "<": ("<=", ">"), ">": (">=", "<"), "<=": ("<", ">="), ">=": (">", "<="), "=": ("<>", "<", ">="), "+": ("-", "*"),
    "-": ("+",), "*": ("+", "-"), "/": ("*",), "JOIN": ("LEFT JOIN", "CROSS JOIN", "FULL JOIN"), "LEFT": ("", "RIGHT"),
    "AND": ("OR",), "OR": ("AND",), "DISTINCT": ("", "ALL"), "WHERE": ("WHERE NOT", "HAVING"), "count": ("sum", "max"),
    "sum": ("count", "avg", "max", "product"), "max": ("sum", "min", "first"), "floor": ("abs", "sqrt", "ln", "exp"),
    "TRY_CAST": ("CAST",), "CAST": ("TRY_CAST",), "least": ("greatest",), "greatest": ("least",), "ALL": ("",),
    "BIGINT": ("TINYINT", "DOUBLE", "VARCHAR", "HUGEINT"), "DOUBLE": ("BIGINT", "FLOAT"), "l": ("r",), "r": ("l",),
    "UNION": ("INTERSECT", "EXCEPT"), "ELSE": ("WHEN TRUE THEN",), "o": ("c0", "h", "rowid", "NULL", "-o", "o + 0"),
    "GROUPING": ("GROUPING", ""), "SETS": ("",), "abs": ("",), "coalesce": ("greatest", "nullif"), "IS": ("IS NOT",),
    "GROUP": ("ORDER", "GROUP"), "NOT": ("",), "NULL": ("0", "o"), "END": ("ELSE 9999 END",),
}  # fmt: skip
CLAUSES = (
    "LIMIT 1", "ORDER BY 1", "HAVING count(*) > 1", "QUALIFY row_number() OVER () = 1", "UNION ALL SELECT 1",
    "WHERE o > 0", "GROUP BY ALL", "USING SAMPLE 50%", "GROUP BY ROLLUP (1)", "GROUP BY CUBE (1)",
    "GROUP BY GROUPING SETS ((1), (1))",
    ", kept1", "WINDOW w AS ()",
)  # fmt: skip
EXPRESSIONS = (
    "NULL", "1", "o", "count(*)", "rowid", "random()", "(SELECT max(c0) FROM kept0)", "1/0", "'nan'::DOUBLE", "c0",
    "c1 * 1e9", "count(*) OVER ()", "CAST(o AS DOUBLE)", "hash(o)", "now()", "2e0", "1000", "-1", "*",
)  # fmt: skip


def _words(draw: Random, sql: str, _other: str) -> str:
    """Another word, name, sign or number."""
    tokens = list(TOKEN.finditer(sql))
    token = draw.choice(tokens)
    word = token.group()
    if word in SWAPS:
        new = draw.choice(SWAPS[word])
    elif word[0].isdigit():
        new = draw.choice(("0", "1", "-1", "2", "7", "1000", "0.5e0", "1e300", str(2**31), str(2**62), word + "0"))
    elif word[0] == "'":
        new = draw.choice(("''", "'a'", "'%'", "NULL"))
    else:
        new = draw.choice(tokens).group()
    return sql[: token.start()] + new + sql[token.end() :]


def spans(sql: str) -> list[tuple[int, int]]:
    """Where brackets, and what is between them, begin and end."""
    found, begun = [], []
    for i, letter in enumerate(sql):
        if letter == "(":
            begun.append(i)
        elif letter == ")" and begun:
            found.append((begun.pop(), i + 1))
    return found


def _spliced(draw: Random, sql: str, other: str) -> str:
    """A bracket taken from another place, or from another statement."""
    mine, theirs = spans(sql), spans(other)
    if not mine or not theirs:
        return _words(draw, sql, other)
    source = draw.choice((sql, other))
    (start, stop), (first, last) = draw.choice(mine), draw.choice(spans(source))
    return sql[:start] + source[first:last] + sql[stop:]


def _cut(draw: Random, sql: str, other: str) -> str:
    """A clause, a bracket's inside, or a condition left out."""
    pattern = draw.choice((
        r" WHERE [^()]*(\([^()]*\)[^()]*)*", r" GROUP BY [^()]*", r" AND [^()]*", r"DISTINCT ", r" ELSE .*? END",
        r" ON [^()]*", r"\([^()]*\)", r", [^(),]*", r"WHEN [^()]*? THEN [^()]*? ", r"CASE .*? END",
    ))  # fmt: skip
    found = list(re.finditer(pattern, sql))
    if not found:
        return _words(draw, sql, other)
    match = draw.choice(found)
    return sql[: match.start()] + draw.choice(("", " ")) + sql[match.end() :]


def _put_in(draw: Random, sql: str, _other: str) -> str:
    """An expression where another word stood."""
    token = draw.choice(list(TOKEN.finditer(sql)))
    return sql[: token.start()] + draw.choice(EXPRESSIONS) + sql[token.end() :]


def _added(draw: Random, sql: str, other: str) -> str:
    """A clause more, or a second statement."""
    return draw.choice((f"{sql} {draw.choice(CLAUSES)}", f"{sql} UNION ALL {sql}", f"{sql}; {sql}", other, f"({sql})"))


def _unclamped(draw: Random, sql: str, other: str) -> str:
    """A number that is held no more: CASE ... ELSE x END becomes x, least(greatest(x, a), b) too."""
    found = list(re.finditer(r"CASE WHEN .*? ELSE (?P<x>.*?) END|(?:least|greatest)\((?P<y>.*?), [^()]*?\)", sql))
    if not found:
        return _put_in(draw, sql, other)
    match = draw.choice(found)
    return sql[: match.start()] + (match["x"] or match["y"]) + sql[match.end() :]


WORDINGS = (_words, _words, _words, _spliced, _spliced, _cut, _put_in, _added, _unclamped)
