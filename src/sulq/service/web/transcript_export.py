"""The whole transcript as one JSON text, sent as it is read: however long a ledger is, nobody holds all of it.

It ends with the entry its verification ended with. If the clerk fails on the way
the text is cut off before its end, and so is no JSON: what is not whole cannot
pass for whole.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, cast

from sulq.errors import QuestionError

PAGE_LINES: Final = 1000  # lines asked of the clerk at a time
Tree = dict[str, object]
Asks = Callable[[str, Mapping[str, object]], Awaitable[Tree]]  # one call of the clerk's table about one dataset


async def first_part(ask: Asks) -> Tree:
    """The verification and the first lines; whatever is refused is refused here, before anything is sent."""
    return await _page(ask, "export", 0)


async def whole(ask: Asks, first: Tree) -> AsyncIterator[bytes]:
    """The export as bytes of one JSON object, its lines last."""
    last = cast("int", cast("Tree", first["report"])["entries"])
    lines = _until(last, first)
    yield _text({name: value for name, value in first.items() if name != "lines"})[:-1] + b',"lines":['
    comma = b""
    while lines:
        yield comma + b",".join(_text(line) for line in lines)
        comma, after = b",", cast("int", lines[-1]["seq"])
        lines = _until(last, await _page(ask, "transcript", after)) if after < last else []
    yield b"]}"


def _until(last: int, page: Tree) -> list[Tree]:
    return [line for line in cast("list[Tree]", page["lines"]) if cast("int", line["seq"]) <= last]


async def _page(ask: Asks, call: str, after: int) -> Tree:
    """So many lines as fit one message."""
    limit = PAGE_LINES
    while True:
        try:
            return await ask(call, {"after": after, "limit": limit})
        except QuestionError as error:
            if error.code != "too-large" or limit == 1:
                raise
            limit = max(limit // 10, 1)


def _text(tree: object) -> bytes:
    return json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
