"""A form from the JSON schema of a job's parameters, and the parameters from the form that comes back.

Whatever kind of work the API offers has its page by this alone: a field for
each parameter that a form can hold, with the name, words and limits of its schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sulq.language.privacy import Budget
from sulq.service.console.api import Tree
from sulq.service.console.forms.spend import ways
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal

WIDGETS: Final = {"string": "text", "number": "number", "integer": "whole", "boolean": "truth"}
_EMPTY_LINE: Final = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One parameter as a form shows it; `widget` is text, number, whole, truth, choice, texts or spend."""

    name: str
    title: str
    words: str
    widget: str
    required: bool
    value: str = ""
    choices: tuple[str, ...] = ()


def fields_of(schema: Tree, budget: Budget) -> list[SchemaField]:
    """The fields of a kind's parameters; an optional one that no form can hold is left at its default."""
    found = []
    for name, given in schema["properties"].items():
        part = _resolved(given, schema)
        widget = _widget(part)
        if widget is None or (widget == "spend" and not ways(budget)):
            continue
        usual = given.get("default")
        found.append(
            SchemaField(
                name=name,
                title=given.get("title") or name,
                words=given.get("description") or part.get("description") or "",
                widget=widget,
                # A price that may be left out has another way to be named, which no form holds: here it is asked for.
                required=name in schema.get("required", ()) or widget == "spend",
                value="" if usual is None else str(usual),
                choices=tuple(map(str, part.get("enum", ()))),
            )
        )
    return found


def parameters(shown: list[SchemaField], fields: Fields, budget: Budget) -> dict[str, object]:
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


def _value(one: SchemaField, text: str, budget: Budget) -> object:
    if one.widget == "texts":
        return [part.strip() for part in _EMPTY_LINE.split(text) if part.strip()]
    if one.widget in ("text", "choice"):
        return text
    try:
        number = int(text) if one.widget == "whole" else float(text)
    except ValueError:
        raise Refusal(400, "bad-request", f"{one.title} is a number.", "Write it with a point, such as 0.1.") from None
    return {ways(budget)[0][0]: number} if one.widget == "spend" else number


def _resolved(part: Tree, schema: Tree) -> Tree:
    """A property without its references and without `or null`."""
    if "$ref" in part:
        return _resolved(schema["$defs"][part["$ref"].rpartition("/")[2]], schema)
    real = [item for item in part.get("anyOf", ()) if item.get("type") != "null"]
    return _resolved(real[0], schema) if len(real) == 1 else part


def _widget(part: Tree) -> str | None:
    if any("epsilon" in shape.get("properties", {}) for shape in (part, *part.get("anyOf", ()))):
        return "spend"
    if part.get("enum"):
        return "choice"
    if part.get("type") == "array":
        return "texts" if part["items"].get("type") == "string" else None
    return WIDGETS.get(part.get("type", ""))
