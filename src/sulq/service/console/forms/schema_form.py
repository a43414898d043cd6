"""A form from the JSON schema of a job's parameters, and the parameters from the form that comes back.

Whatever kind of work the API offers has its page by this alone: a field for
each parameter that a form can hold, with the name, words and limits of its schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from sulq.language.privacy import Budget
from sulq.service.console.api import Tree
from sulq.service.console.forms.spend import ways
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal

Widget = Literal["text", "number", "whole", "truth", "choice", "texts", "spend"]
_APART: Final = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter as a form shows it."""

    name: str
    title: str
    words: str
    widget: Widget
    required: bool
    value: str = ""
    choices: tuple[str, ...] = ()
    least: object = None
    most: object = None


def fields_of(schema: Tree, budget: Budget) -> list[Field]:
    """The fields of a kind's parameters; an optional one that no form can hold is left at its default."""
    properties = schema.get("properties")
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    found = []
    for name, given in properties.items() if isinstance(properties, Mapping) else ():
        part = _plain(cast("Tree", given), schema)
        widget = _widget(part)
        if widget is None or (widget == "spend" and not ways(budget)):
            continue
        usual = cast("Tree", given).get("default")
        found.append(
            Field(
                name=str(name),
                title=str(cast("Tree", given).get("title") or name),
                words=str(cast("Tree", given).get("description") or part.get("description") or ""),
                widget=widget,
                # A price that may be left out has another way to be named, which no form holds: here it is asked for.
                required=name in needed or widget == "spend",
                value="" if usual is None else str(usual),
                choices=tuple(str(item) for item in cast("list[object]", part.get("enum") or [])),
                least=part.get("minimum", part.get("exclusiveMinimum")),
                most=part.get("maximum", part.get("exclusiveMaximum")),
            )
        )
    return found


def parameters(shown: list[Field], fields: Fields, budget: Budget) -> dict[str, object]:
    """The parameters a form names, each of its own kind; an empty optional one keeps its default."""
    found: dict[str, object] = {}
    for one in shown:
        text = fields.get(f"p-{one.name}", "").replace("\r\n", "\n").strip()
        if one.widget == "truth":
            found[one.name] = text == "yes"
        elif text:
            found[one.name] = _value(one, text, budget)
        elif one.required:
            raise Refusal(400, "bad-request", f"{one.title} is missing.", "Fill it in, then start the job again.")
    return found


def _value(one: Field, text: str, budget: Budget) -> object:
    if one.widget == "texts":
        return [part.strip() for part in _APART.split(text) if part.strip()]
    if one.widget in ("text", "choice"):
        return text
    try:
        number = int(text) if one.widget == "whole" else float(text)
    except ValueError:
        raise Refusal(400, "bad-request", f"{one.title} is a number.", "Write it with a point, such as 0.1.") from None
    return {ways(budget)[0][0]: number} if one.widget == "spend" else number


def _plain(part: Tree, schema: Tree) -> Tree:
    """A property without its references and without `or null`."""
    for _ in range(8):
        reference = part.get("$ref")
        if isinstance(reference, str):
            definitions = cast("Tree", schema.get("$defs") or {})
            part = cast("Tree", definitions.get(reference.rpartition("/")[2]) or {})
            continue
        some = part.get("anyOf")
        real = [item for item in some if item.get("type") != "null"] if isinstance(some, list) else []
        if len(real) != 1:
            break
        part = real[0]
    return part


def _widget(part: Tree) -> Widget | None:
    options = part.get("anyOf")
    shapes = [part, *(options if isinstance(options, list) else [])]
    if any("epsilon" in cast("Tree", item.get("properties") or {}) for item in shapes if isinstance(item, Mapping)):
        return "spend"
    if part.get("enum"):
        return "choice"
    items = part.get("items")
    if part.get("type") == "array":
        return "texts" if isinstance(items, Mapping) and items.get("type") == "string" else None
    names: dict[object, Widget] = {"string": "text", "number": "number", "integer": "whole", "boolean": "truth"}
    return names.get(part.get("type"))
