"""What an expression is called in the tables of an inference: as people write it, `education > 12`."""

from __future__ import annotations

from typing import Final

from sulq.language.rowfn import Arith, Col, Compare, Each, Lit, Logic, Not, RowFn
from sulq.language.rowfn.base import describe

MAX_TITLE: Final = 80  # characters of an expression: a longer one is told by its columns
# How strongly operators bind, the weakest first; what binds less than its place asks stands in brackets.
OR, AND, NOT, COMPARISON, SUM, PRODUCT, ATOM = range(1, 8)


def title(fn: RowFn) -> str:
    """A column's name, or an expression of comparisons, and/or/not, arithmetic, columns and literals as it is written.

    Of any other, or a long one: which columns it is of.
    """
    inner = fn.item if isinstance(fn, Each) else fn
    if isinstance(inner, Col):
        return inner.name
    found = _written(inner)
    return describe(fn) if found is None or len(found) > MAX_TITLE else found


def labelled(fn: RowFn, label: object, name: str | None = None) -> str:
    """What a label of a key is called, of that name or the key's own."""
    inner = fn.item if isinstance(fn, Each) else fn
    bare = name is not None or isinstance(inner, Col) or _bound(inner)[1] != title(fn)
    return f"{name or title(fn)}={label}" if bare else f"({title(fn)})={label}"


def _written(fn: RowFn, place: int = 0) -> str | None:
    """The expression, in brackets where it binds less than `place` asks; None where a part has no such form."""
    binds, text = _bound(fn)
    return f"({text})" if text is not None and binds < place else text


def _bound(fn: RowFn) -> tuple[int, str | None]:
    """How strongly an expression binds, and itself."""
    match fn:
        case Col():
            return ATOM, fn.name if fn.name.isidentifier() else f"col({fn.name!r})"
        case Lit():
            return ATOM, repr(fn.value)
        case Compare():
            return COMPARISON, _joined(f" {fn.op} ", _written(fn.left, SUM), _written(fn.right, SUM))
        case Arith():
            binds = SUM if fn.op in "+-" else PRODUCT
            return binds, _joined(f" {fn.op} ", _written(fn.left, binds), _written(fn.right, binds + 1))
        case Logic():
            binds = OR if fn.op == "or" else AND
            return binds, _joined(f" {fn.op} ", *(_written(item, binds) for item in fn.items))
        case Not():
            return NOT, _joined("", "not ", _written(fn.item, ATOM))
        case _:
            return ATOM, None


def _joined(between: str, *parts: str | None) -> str | None:
    known = [part for part in parts if part is not None]
    return between.join(known) if len(known) == len(parts) else None
