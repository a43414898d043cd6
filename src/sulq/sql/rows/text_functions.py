"""Text functions over rows: on a category by renaming its public labels, on free text by row functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from sulq.language import rowfn
from sulq.language.domain import Schema, Text
from sulq.language.kinds import Cells, Code, Words
from sulq.language.question import MAX_NODES
from sulq.language.rowfn import RowFn, Substring, Trimmed
from sulq.language.rowfn.base import evaluate, walk
from sulq.sql.parse.syntax import SqlRefused, unsupported
from sulq.sql.rows.values import Cell, Fixed, TrialRows, cell

MAX_PAIRS: Final = 1024
Operand = Cell | Fixed
OfTexts = Callable[[Sequence[str]], list[Any]]
ONE_TEXT: Final = Schema("", (("x", Text()),))


def text(item: Operand, at: int) -> str:
    """A constant text."""
    if isinstance(item, Fixed) and isinstance(item.value, str):
        return item.value
    raise SqlRefused("sql-unsupported", "Only a constant text is answered here", at, "Write the text in single quotes.")


def whole(item: Operand, at: int) -> int:
    """A constant whole number."""
    if isinstance(item, Fixed) and isinstance(item.value, int) and not isinstance(item.value, bool):
        return item.value
    raise SqlRefused("sql-unsupported", "Only a constant whole number is answered here", at, "Write the number itself.")


def evaluated(build: Callable[[RowFn], RowFn], texts: Sequence[str]) -> list[Any]:
    """What a row function of a text gives for each of these."""
    cells = Cells(np.array(texts, dtype=object), None)
    found = evaluate(build(rowfn.Col("x")), TrialRows(ONE_TEXT, len(texts), lambda _: cells))
    return cast("list[Any]", found.values.tolist())


def _ilike(fn: RowFn, pattern: str, escape: str = "\\") -> RowFn:
    return rowfn.Like(rowfn.Lowered(fn), evaluated(rowfn.Lowered, [pattern])[0], escape)


# Functions of a text and of constants: how the constants are read, the row function, and what it gives.
FUNCTIONS: Final[dict[str, tuple[tuple[Callable[[Operand, int], object], ...], Callable[..., RowFn], str]]] = {
    "lower": ((), rowfn.Lowered, "text"),
    "upper": ((), rowfn.Uppered, "text"),
    "length": ((), rowfn.Length, "int"),
    "position": ((text,), rowfn.IndexOf, "int"),
    "starts_with": ((text,), rowfn.StartsWith, "bool"),
    "like": ((text, text), rowfn.Like, "bool"),
    "ilike": ((text, text), _ilike, "bool"),
    "substring": ((whole, whole), Substring, "text"),
    "left": ((whole,), lambda fn, size: Substring(fn, 1, size), "text"),
    "btrim": ((text,), lambda fn, signs=" ": Trimmed(fn, "both", signs), "text"),
    "ltrim": ((text,), lambda fn, signs=" ": Trimmed(fn, "left", signs), "text"),
    "rtrim": ((text,), lambda fn, signs=" ": Trimmed(fn, "right", signs), "text"),
}
# Functions that only labels have: how the constants are read, and the text that is given.
OF_LABELS: Final[dict[str, tuple[tuple[Callable[[Operand, int], object], ...], Callable[..., str]]]] = {
    "left": ((whole,), lambda x, size: x[:size]),  # of a negative size: all but the last
    "right": ((whole,), lambda x, size: x[-size:] if size else ""),
    "replace": ((text, text), lambda x, old, new="": x.replace(old, new) if old else x),
}
NAMES: Final = (*FUNCTIONS, *OF_LABELS, "||", "concat")


@dataclass(frozen=True, slots=True)
class TextFunctions:
    """Builds the row functions of text over one relation's columns."""

    schema: Schema

    def call(self, op: str, args: list[Operand], at: int) -> Operand:
        """A function of text."""
        readers, build, to = FUNCTIONS.get(op, ((), None, "text"))
        if any(isinstance(arg, Fixed) and arg.value is None for arg in args) and op != "concat":
            return Fixed(None, to)
        if op in ("||", "concat"):
            return self._joined(args, at, skip=op == "concat")
        if op in OF_LABELS:
            readers, of_label = OF_LABELS[op]
        constants = [read(arg, at) for read, arg in zip(readers, args[1:], strict=False)]
        if op == "substring" and len(constants) > 1 and cast("int", constants[1]) < 0:
            raise SqlRefused("bad-literal", "A text has no negative length", at)
        if op == "left" and cast("int", constants[0]) < 0:
            build = None

        def of_texts(texts: Sequence[str]) -> list[Any]:
            if build is None:
                return [of_label(one, *constants) for one in texts]
            found = evaluated(lambda fn: build(fn, *constants), texts)
            return list(map(int, found)) if to == "int" else found

        item = args[0]
        if isinstance(item, Fixed):
            return Fixed(of_texts([text(item, at)])[0], to)
        if isinstance(item.kind, Code):
            return self.relabelled(item, of_texts, to, at)
        if not isinstance(item.kind, Words):
            raise SqlRefused("wrong-kind", "Text is needed here", at)
        if build is None:
            return unsupported(f"{op}() on free text", at, "Declare the column's categories.")
        return cell(build(item.fn, *constants), to, self.schema, at)

    def relabelled(self, item: Cell, of_texts: OfTexts, to: str, at: int) -> Operand:
        """A function of a category, worked out on its labels, which are public."""
        every = item.kind.labels if isinstance(item.kind, Code) else ()
        labels = [label for label in every if label is not None]
        if not labels and to != "bool":
            return Fixed(None, "text")
        given = dict(zip(labels, of_texts([str(label) for label in labels]), strict=True))
        if to == "bool":
            return cell(rowfn.IsIn(item.fn, tuple(x for x in labels if given[x])), to, self.schema, at)  # type: ignore[misc]
        renamed = rowfn.Relabel(item.fn, tuple(None if x is None else given[x] for x in every))
        return cell(rowfn.Value(renamed) if to == "int" else renamed, to, self.schema, at)

    def _joined(self, args: list[Operand], at: int, *, skip: bool) -> Operand:
        """Texts one after the other; `concat` takes a missing one as empty, `||` is missing then."""
        parts = [Fixed(_shown(arg, at), "text") if isinstance(arg, Fixed) else arg for arg in args]
        parts = [part for part in parts if not (isinstance(part, Fixed) and part.value == "")]
        if any(isinstance(part, Cell) and isinstance(part.kind, Words) for part in parts):
            return self._free(parts, at, skip=skip)
        found: Operand = Fixed("", "text")
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
                unsupported("Free text joined with a category", at, "Group by each of them.")
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
        return self.relabelled(one, lambda texts: [word + x if before else x + word for x in texts], "text", at)

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
        for a, b in itertools.product(left.kind.labels, right.kind.labels):
            if a is not None and b is not None:
                place = labels.setdefault(f"{a}{b}", len(labels))
                branches.append(((left.fn == a) & (right.fn == b), place))
        return cell(rowfn.Choice(tuple(branches), tuple(labels)), "text", self.schema, at)


def _shown(item: Fixed, at: int) -> str:
    """A constant as text."""
    if item.value is None:
        return ""
    if isinstance(item.value, (str, int)) and not isinstance(item.value, bool):
        return str(item.value)
    raise SqlRefused("wrong-kind", "Text is needed here", at)
