"""The kinds of released values: what no function of them takes is refused before anything is asked or paid.

A value whose kind is known only after the release (a UNION of texts and numbers, the
label of a bin) is ANY; a function that does not take it then is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeGuard

from sulq.sql.parse.syntax import Aggregate, Call, Literal, Node, SqlRefused, branches
from sulq.sql.released.functions import COMPARISONS, KNOWN, read_moment, takes

ANY: Final = "any"
CLOCK: Final = "clock"
NUMBER: Final = "number"
TEXT: Final = "text"
WORDS: Final = {CLOCK: "a date", NUMBER: "a number", TEXT: "text"}
OF_TYPE: Final = {"text": TEXT, "date": CLOCK, "timestamp": CLOCK, "int": NUMBER, "float": NUMBER, "bool": NUMBER}

ARITHMETIC: Final = (
    "+", "-", "*", "/", "mod", "power", "neg", "abs", "sign", "floor", "ceil", "round", "trunc", "sqrt", "cbrt", "exp",
    "ln", "log", "sin", "cos", "tan", "degrees", "radians", "width_bucket",
)  # fmt: skip
NUMBERS_FROM: Final = {
    **dict.fromkeys(ARITHMETIC, 0),
    "substring": 1,
    "left": 1,
    "right": 1,
}  # the first argument that must be a number
COMPARED: Final = (*COMPARISONS, "in", "nullif", "is distinct from", "is not distinct from")
MIXED_NEVER: Final = ("case", "coalesce", "greatest", "least")
TEXTS: Final = ("||", "concat", "lower", "upper", "trim", "ltrim", "rtrim", "substring", "left", "right", "replace")
AGGREGATES_OF_ANY: Final = ("rows", "count", "min", "max", "quantile_disc", "bool_and", "bool_or")


class ReleasedKinds:
    """Works out the kind of each expression over one released table, and refuses what takes another kind."""

    def __init__(self, leaves: Mapping[Node, str]) -> None:
        self.leaves = dict(leaves)
        self._calls: dict[int, tuple[Call, str]] = {}  # by identity: a long sum is not gone through again at each term

    def of(self, node: Node) -> str:
        """The kind of a lowered expression."""
        if isinstance(node, Literal):
            return OF_TYPE.get(node.type, ANY)
        if not isinstance(node, Call):
            return self.leaves.get(node, ANY)
        if id(node) not in self._calls:
            self._calls[id(node)] = node, self._called(node)
        return self._calls[id(node)][1]

    def call(self, node: Call) -> Call:
        """The call itself, or a refusal: arguments that it never takes."""
        op, args = node.op, node.args
        kinds = [self.of(arg) for arg in args]
        if op in KNOWN and not takes(op, len(args)):
            what = f"{op} does not take {len(args)} argument{'s' * (len(args) != 1)}"
            raise SqlRefused("sql-unsupported", what, node.at, "Give the function the arguments that PostgreSQL lists.")
        for kind in kinds[NUMBERS_FROM.get(op, len(kinds)) :]:
            if kind == TEXT:
                raise SqlRefused("wrong-kind", "A number is needed here, not text", node.at)
        if op in MIXED_NEVER:
            self._alike(node, _results(node) if op == "case" else args)
        elif op in COMPARED:
            self._alike(node, [arg for arg in args if not _read_as_other(arg)])
            others = {kind for kind in kinds if kind in (NUMBER, CLOCK)}
            for text in [arg for arg in args if _read_as_other(arg)] if len(others) == 1 else []:
                if not _reads(str(text.value), *others):
                    why = f"{str(text.value)[:40]!r} cannot be compared with {WORDS[min(others)]}"
                    raise SqlRefused("wrong-kind", why, text.at or node.at)
        return node

    def _alike(self, node: Call, args: Sequence[Node]) -> None:
        """Refuse text beside a number or a date."""
        kinds = {self.of(arg) for arg in args} - {ANY}
        if TEXT in kinds and len(kinds) > 1:
            other = WORDS[min(kinds - {TEXT})]
            raise SqlRefused("wrong-kind", f"Text stands beside {other} here", node.at, "Cast one: CAST(x AS TEXT).")

    def aggregate(self, node: Aggregate) -> str:
        """The kind of an aggregate of released rows."""
        kind = self.of(node.args[0]) if node.args else NUMBER
        if kind == TEXT and node.name not in AGGREGATES_OF_ANY:
            raise SqlRefused("wrong-kind", f"{node.called}() takes a number here, not text", node.at)
        return kind if node.name in ("min", "max", "quantile_disc") else NUMBER

    def _called(self, node: Call) -> str:
        op = node.op
        if op.startswith("cast "):
            return OF_TYPE[op.removeprefix("cast ")]
        if op in TEXTS:
            return TEXT
        if op == "date_trunc":
            return CLOCK
        if op == "case":
            return common([self.of(arg) for arg in _results(node)])
        kinds = [self.of(arg) for arg in node.args]
        if op in ("coalesce", "greatest", "least"):
            return common(kinds)
        if op == "nullif":
            return kinds[0]
        if op in ("+", "-") and CLOCK in kinds:
            return NUMBER if kinds == [CLOCK, CLOCK] else CLOCK
        return ANY if op in ("+", "-") and ANY in kinds else NUMBER


def _results(case: Call) -> list[Node]:
    """What a CASE may give."""
    pairs, last = branches(case)
    return [then for _, then in pairs] + ([] if last is None else [last])


def _read_as_other(node: Node) -> TypeGuard[Literal]:
    """Whether a comparison reads this as the kind of what stands beside it: a text that was written out."""
    return isinstance(node, Literal) and node.type == "text"


def common(kinds: Sequence[str]) -> str:
    """The one kind of several values; ANY where they have several, or none is known."""
    found = set(kinds) - {ANY}
    return found.pop() if len(found) == 1 else ANY


def _reads(text: str, kind: str) -> bool:
    """Whether a text can be read as a value of a kind, as a comparison reads it."""
    try:
        if kind == CLOCK:
            read_moment(text)
        else:
            float(text)
    except ValueError:
        return False
    return True
