"""Text functions over rows: on a category by renaming its public labels, on free text by row functions."""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable
from typing import Final

from sulq.language import rowfn
from sulq.language.domain import Schema
from sulq.language.kinds import Code, Words
from sulq.language.question import MAX_NODES
from sulq.language.rowfn import RowFn
from sulq.sql.parse.syntax import SqlRefused, unsupported
from sulq.sql.rows.values import Cell, Fixed, cell, walk

MAX_PAIRS: Final = 1024
Operand = Cell | Fixed
LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
UPPER: Final = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
SIDES: Final = {"btrim": "both", "ltrim": "left", "rtrim": "right"}
NAMES: Final = (
    *("lower", "upper", "length", "substring", "left", "right", "replace", "position"),
    *("btrim", "ltrim", "rtrim", "starts_with", "like", "ilike", "||", "concat"),
)
RESULTS: Final = {"length": "int", "position": "int", "starts_with": "bool", "like": "bool", "ilike": "bool"}


def text(item: Operand, at: int) -> str:
    """A constant text."""
    if isinstance(item, Fixed) and isinstance(item.value, str):
        return item.value
    raise SqlRefused("sql-unsupported", "Only a constant text is answered here", at)


def whole(item: Operand, at: int) -> int:
    """A constant whole number."""
    if isinstance(item, Fixed) and isinstance(item.value, int) and not isinstance(item.value, bool):
        return item.value
    raise SqlRefused("sql-unsupported", "Only a constant whole number is answered here", at)


def substring(value: str, start: int, length: int | None) -> str:
    """The characters from place `start` (from 1), `length` of them; places before the first hold nothing."""
    first = max(start - 1, 0)
    return value[first:] if length is None else value[first : max(start - 1 + length, first)]


def stripped(value: str, side: str, signs: str) -> str:
    """A text without these characters at its ends."""
    cut = {"both": str.strip, "left": str.lstrip, "right": str.rstrip}[side]
    return cut(value, signs) if signs else value


class TextFunctions:
    """Builds the row functions of text over one relation's columns."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def call(self, op: str, args: list[Operand], at: int) -> Operand:
        """A function of text."""
        if any(isinstance(arg, Fixed) and arg.value is None for arg in args) and op != "concat":
            return Fixed(None, RESULTS.get(op, "text"))
        if op in ("||", "concat"):
            return self._joined(args, at, skip=op == "concat")
        item = args[0]
        pure, build = self._meaning(op, args, at)
        if isinstance(item, Fixed):
            found = pure(text(item, at))
            return Fixed(found, {str: "text", bool: "bool", int: "int"}[type(found)])
        if isinstance(item.kind, Code):
            return self.relabelled(item, pure, at)
        if not isinstance(item.kind, Words):
            raise SqlRefused("wrong-kind", "Text is needed here", at)
        if build is None:
            return unsupported(f"{op}() on free text", at, "Declare the column's categories.")
        return cell(build(item.fn), RESULTS.get(op, "text"), self.schema, at)

    def relabelled(self, item: Cell, pure: Callable[[str], str | int | bool], at: int) -> Operand:
        """A function of a category, worked out on its labels, which are public."""
        labels = item.kind.labels if isinstance(item.kind, Code) else ()
        found = [None if label is None else pure(str(label)) for label in labels]
        kinds = {type(value) for value in found if value is not None}
        if bool in kinds:
            chosen = tuple(label for label, value in zip(labels, found, strict=True) if value)
            return cell(rowfn.IsIn(item.fn, chosen), "bool", self.schema, at)  # type: ignore[arg-type]
        if not kinds:
            return Fixed(None, "text")
        renamed = rowfn.Relabel(item.fn, tuple(found))
        return (
            cell(rowfn.Value(renamed), "int", self.schema, at)
            if int in kinds
            else cell(renamed, "text", self.schema, at)
        )

    def _meaning(
        self, op: str, args: list[Operand], at: int
    ) -> tuple[Callable[[str], str | int | bool], Callable[[RowFn], RowFn] | None]:
        """What a function does with one text, and the row function that does it, where there is one."""
        match op:
            case "lower":
                return lambda x: x.translate(LOWER), rowfn.Lowered
            case "upper":
                return lambda x: x.translate(UPPER), rowfn.Uppered
            case "length":
                return len, rowfn.Length
            case "position":
                needle = text(args[1], at)
                return lambda x: x.find(needle) + 1, lambda fn: rowfn.IndexOf(fn, needle)
            case "starts_with":
                prefix = text(args[1], at)
                return lambda x: x.startswith(prefix), lambda fn: rowfn.StartsWith(fn, prefix)
            case "substring":
                start, size = whole(args[1], at), whole(args[2], at) if len(args) > 2 else None
                if size is not None and size < 0:
                    raise SqlRefused("bad-literal", "A text has no negative length", at)
                return lambda x: substring(x, start, size), lambda fn: rowfn.Substring(fn, start, size)
            case "left":
                size = whole(args[1], at)
                return lambda x: x[:size], (lambda fn: rowfn.Substring(fn, 1, size)) if size >= 0 else None
            case "right":
                count = whole(args[1], at)
                return lambda x: x[len(x) - count :] if 0 <= count < len(x) else x if count >= 0 else x[-count:], None
            case "replace":
                old, new = text(args[1], at), text(args[2], at) if len(args) > 2 else ""
                return lambda x: x.replace(old, new) if old else x, None
            case "btrim" | "ltrim" | "rtrim":
                signs, side = text(args[1], at) if len(args) > 1 else " ", SIDES[op]
                return lambda x: stripped(x, side, signs), lambda fn: rowfn.Trimmed(fn, side, signs)  # type: ignore[arg-type]
            case _:
                return self._pattern(op, args, at)

    def _pattern(self, op: str, args: list[Operand], at: int) -> tuple[Callable[[str], bool], Callable[[RowFn], RowFn]]:
        pattern, escape = text(args[1], at), text(args[2], at) if len(args) > 2 else "\\"
        if op == "like":
            return lambda x: rowfn.like(x, pattern, escape), lambda fn: rowfn.Like(fn, pattern, escape)
        small = pattern.translate(LOWER)
        return lambda x: rowfn.like(x.translate(LOWER), small, escape), lambda fn: rowfn.Like(
            rowfn.Lowered(fn), small, escape
        )

    def _joined(self, args: list[Operand], at: int, *, skip: bool) -> Operand:
        """Texts one after the other; `concat` takes a missing one as empty, `||` is missing then."""
        parts = [Fixed(_shown(arg, at), "text") if isinstance(arg, Fixed) else arg for arg in args]
        parts = [part for part in parts if not (isinstance(part, Fixed) and part.value == "")]
        found: Operand = Fixed("", "text")
        words = any(isinstance(part, Cell) and isinstance(part.kind, Words) for part in parts)
        if words:
            return self._free(parts, at, skip=skip)
        for part in parts:
            found = self._pair(found, part, at, skip=skip)
        return found

    def _free(self, parts: list[Operand], at: int, *, skip: bool) -> Cell:
        fns: list[RowFn] = []
        for part in parts:
            if isinstance(part, Fixed):
                fns.append(rowfn.Lit(str(part.value)))
            elif isinstance(part.kind, Words):
                fns.append(rowfn.First((part.fn, rowfn.Lit(""))) if skip else part.fn)
            else:
                unsupported("Free text joined with a category", at)
        return cell(rowfn.Concat(tuple(fns)), "text", self.schema, at)

    def _pair(self, left: Operand, right: Operand, at: int, *, skip: bool) -> Operand:
        if isinstance(left, Fixed) and isinstance(right, Fixed):
            return Fixed(str(left.value) + str(right.value), "text")
        if isinstance(left, Cell) and isinstance(right, Cell):
            return self._product(left, right, at, skip=skip)
        one, fixed = (left, right) if isinstance(left, Cell) else (right, left)
        if not isinstance(one, Cell) or not isinstance(fixed, Fixed) or not isinstance(one.kind, Code):
            raise SqlRefused("wrong-kind", "Text is needed here", at)
        word = str(fixed.value)
        before = isinstance(left, Fixed)
        return self.relabelled(one, (lambda x: word + x) if before else (lambda x: x + word), at)

    def _product(self, left: Cell, right: Cell, at: int, *, skip: bool) -> Cell:
        """Two categories side by side: every pair of their labels."""
        if not isinstance(left.kind, Code) or not isinstance(right.kind, Code) or skip:
            return unsupported("concat() of several columns", at, "Write a || b.")
        pairs = left.kind.size * right.kind.size
        if pairs > MAX_PAIRS:
            raise SqlRefused("too-large", f"Two categories joined have at most {MAX_PAIRS} pairs", at)
        if pairs * len(list(itertools.islice(walk(left.fn, right.fn), MAX_NODES))) > MAX_NODES:
            raise SqlRefused("too-large", "Too many categories are joined one after the other", at)  # T74
        labels: dict[str, int] = {}
        branches = []
        for a in left.kind.labels:
            for b in right.kind.labels:
                if a is None or b is None:
                    continue
                place = labels.setdefault(f"{a}{b}", len(labels))
                sides = (rowfn.Compare("==", side.fn, rowfn.Lit(label)) for side, label in ((left, a), (right, b)))  # type: ignore[arg-type]
                both = rowfn.Logic("and", tuple(sides))
                branches.append((both, place))
        return cell(rowfn.Choice(tuple(branches), tuple(labels)), "text", self.schema, at)


def _shown(item: Fixed, at: int) -> str:
    """A constant as text."""
    if item.value is None:
        return ""
    if isinstance(item.value, (str, int)) and not isinstance(item.value, bool):
        return str(item.value)
    raise SqlRefused("wrong-kind", "Text is needed here", at)
