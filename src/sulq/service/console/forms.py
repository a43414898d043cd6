"""Forms of the console: what an ask pays, and the parameters of a job.

A learner's or a release's form is made of what the API says of its signature; any other kind of job has
its form from the JSON schema of its parameters: a field for each that a form can hold.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

from sulq.errors import QuestionError
from sulq.forms.signature import Field, Form
from sulq.language.domain import Bool, Category, Column, Int, Real, Text
from sulq.language.facts import Facts
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.service.console.api import Refusal, Tree
from sulq.service.console.guard import Fields
from sulq.service.console.views.words import left, size

MIN_SLIDER_PRICE: Final = 0.001  # where the slider starts; a smaller price may be typed
CONFIDENCES: Final = {"0.1": "90%", "0.05": "95%", "0.01": "99%"}  # chances of being further off, and how one says it
MAX_CLASSES: Final = 100  # values of an integer column that may be predicted as classes
FILE_KINDS: Final = (("parquet", "Parquet"), ("csv", "CSV"))
GROUPS: Final = {  # of each kind of form: the title and text of its group in a list
    "unsupervised": ("Find structure", "No column is predicted."),
    "classifier": ("Predict a class", "The label is a category, a truth value or a small whole number."),
    "regressor": ("Predict a number", "The label is a number."),
    "release": ("Publish", "An object that anybody may use for ever; using it costs nothing more."),
    "selection": ("Choose", "Of many public candidates the one that is about the best, and nothing else."),
}
WIDGETS: Final = {"string": "text", "number": "number", "integer": "whole", "boolean": "truth"}
_EMPTY_LINE: Final = re.compile(r"\n[ \t]*\n")


def ways(budget: Budget) -> list[tuple[str, str]]:
    """How a budget can be paid from: the first is the usual one."""
    match budget:
        case Epsilon():
            return [("epsilon", "ε")]
        case Rho():
            return [("rho", "ρ"), ("epsilon", "ε")]
        case EpsilonDelta():
            return [("epsilon", "ε"), ("both", "ε and δ: groups that are not declared"), ("rho", "ρ")]
        case SubLinear():
            return []


def most(budget: Budget, remaining: object) -> float:
    """Where the slider ends: what is left, or a little more than nothing."""
    room = size(remaining) if isinstance(remaining, (Epsilon, EpsilonDelta, Rho)) else size(budget)
    return max(room, 10 * MIN_SLIDER_PRICE)


def usual(budget: Budget, remaining: object) -> float:
    """A price to begin with: a tenth of what is left, of one digit."""
    part = most(budget, remaining) / 10
    power = 10.0 ** math.floor(math.log10(part))
    return max(round(math.floor(part / power + 1e-9) * power, 12), MIN_SLIDER_PRICE)


def spend(fields: Fields, budget: Budget) -> dict[str, float] | None:
    """The spend a form names, in the API's short form; None where the budget sets the price itself."""
    if isinstance(budget, SubLinear):
        return None
    way = fields.text("way") or ways(budget)[0][0]
    amount = _positive(fields.text("amount"), "The price")
    if way == "both":
        return {"epsilon": amount, "delta": _positive(fields.text("delta"), "Delta")}
    return {"rho" if way == "rho" else "epsilon": amount}


def price_fields(known: Facts, sent: Fields) -> dict[str, Any]:
    """What the part of a page shows that asks for a price."""
    delta = f"{float(known.budget.delta) / 100:g}" if isinstance(known.budget, EpsilonDelta) else ""
    return {
        "amount": sent.text("amount") or f"{usual(known.budget, known.remaining):g}",
        "ways": ways(known.budget),
        "way": sent.text("way"),
        "delta": sent.text("delta") or delta,
        "least": MIN_SLIDER_PRICE,
        "most": most(known.budget, known.remaining),
        "remaining": known.remaining,
        "budget": known.budget,
        "unit": known.unit,
        "left": left(known.remaining, known.budget),
    }


def terms(fields: Fields, budget: Budget) -> dict[str, object]:
    """How a form names its price, as the API takes it: a spend, or the accuracy wished for and the most it may cost."""
    paid = spend(fields, budget)
    if paid is None:
        return {}
    if fields.text("by") != "accuracy":
        return {"spend": paid}
    beta = fields.text("sure") or "0.05"
    if beta not in CONFIDENCES:
        raise Refusal(400, "bad-literal", "How sure is one of the list.", f"Choose {', '.join(CONFIDENCES.values())}.")
    return {"within": _positive(fields.text("width"), "How far off"), "beta": float(beta), "at_most": paid}


def _positive(text: str, what: str) -> float:
    try:
        found = float(text.replace("−", "-"))
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found <= 0:
        raise Refusal(400, "bad-loss", f"{what} is a number above zero.", "Write it with a point, such as 0.1.")
    return found


@dataclass(frozen=True, slots=True)
class FormField(Field):
    """One parameter as a page asks for it."""

    @property
    def key(self) -> str:
        """Its name in the form that is sent."""
        return f"p-{self.name}"

    @property
    def title(self) -> str:
        """Its name in words."""
        return self.name.replace("_", " ").capitalize()

    @property
    def words(self) -> str:
        """What it does; for a list also how to write one."""
        how = replace(self, optional=False).takes
        several = self.depth > 0 and self.widget in ("text", "area")
        parts = [self.help, f"{how}." if several else ""] if self.help else [self.takes]
        return " ".join(part[:1].upper() + part[1:] for part in parts if part).replace("`", "")

    @property
    def widget(self) -> str:
        """How it is asked for: check, choice, column, columns, area or text."""
        if self.kind == "column" and self.depth < 2:
            return "columns" if self.depth else "column"
        if self.kind == "text" and self.depth == 1:
            return "area"
        return {"flag": "check", "choice": "choice"}.get(self.kind, "text")

    @property
    def plain(self) -> bool:
        """Whether it is one number and nothing else."""
        return self.kind in ("whole", "number") and not self.choices and not self.depth

    @property
    def value(self) -> str:
        """Its default, as it stands in the field."""
        return "" if self.default is None else "yes" if self.default is True else str(self.default)

    def parse(self, text: str) -> object:
        """What a field's text stands for; the API checks it once more."""
        try:
            return self.read(text.replace("\r\n", "\n"))
        except QuestionError:
            raise mistake(f"{self.title} is {self.takes}.", "Correct it, then start again.") from None


@dataclass(frozen=True, slots=True)
class JobForm(Form):
    """What a page asks for; `kinds` are the kinds of form that the page shows."""

    kinds: ClassVar[tuple[str, ...]] = ()
    noun: ClassVar[str] = "form"
    fields: tuple[FormField, ...]

    @classmethod
    def of(cls, kind: Tree) -> Self | None:
        """The form of a kind of job; None where another page shows it."""
        told = kind.get("form")
        if not told or told.get("kind") not in cls.kinds:
            return None
        return cls(
            name=kind["name"],
            title=kind["title"],
            words=told["words"].replace("`", ""),  # marks of code are for terminals
            kind=told["kind"],
            fields=tuple(map(FormField.from_json, told["fields"])),
        )

    def columns(self, known: Facts) -> list[tuple[str, Column]]:
        """The columns that may be named; free text may not."""
        return [(name, column) for name, column in known.schema.columns if not isinstance(column, Text)]

    def parameters(self, sent: Fields) -> dict[str, object]:
        """The job's parameters that a sent form names; what was not changed keeps its default."""
        found: dict[str, object] = {}
        for field in self.fields:
            text = sent.get(field.key)
            if field.widget == "check":
                found[field.name] = text == "yes"
            elif field.widget == "columns":
                found |= {field.name: sent.all(field.key)} if sent.all(field.key) else {}
            elif text is not None and text.strip() != field.value:
                found[field.name] = field.parse(text)
            if field.required and field.name not in found:
                what = "Choose one" if field.widget in ("column", "columns") else "Fill it in"
                raise mistake(f"{field.title} is missing.", f"{what}, then start again.")
        return found

    def page_values(self, known: Facts, sent: Fields) -> dict[str, Any]:
        """What its page shows besides the fields."""
        return {"columns": self.columns(known)}


class LearnForm(JobForm):
    """What a learner's page asks for."""

    kinds = ("unsupervised", "classifier", "regressor")
    noun = "learner"

    def labels(self, known: Facts) -> list[tuple[str, Column]]:
        """The columns that may be predicted: those with classes, or numbers."""
        found = self.columns(known)
        if self.kind != "classifier":
            return [(name, column) for name, column in found if isinstance(column, (Int, Real))]
        few = {name for name, column in found if isinstance(column, Int) and column.hi - column.lo < MAX_CLASSES}
        return [(name, column) for name, column in found if name in few or isinstance(column, (Bool, Category))]

    def parameters(self, sent: Fields) -> dict[str, object]:
        """The job's columns and parameters that a sent form names; what was not changed keeps its default."""
        ticked, label = sent.all("x"), sent.text("y")
        if self.supervised and not label:
            raise mistake("The column to predict is missing.", "Choose one, then start again.")
        if not [name for name in ticked if name != label]:
            raise mistake("There are no columns to learn from.", "Tick at least one, then start again.")
        if label in ticked:
            raise mistake(f"{label} is to be predicted: it cannot be learned from as well.", "Untick it in the list.")
        bounds = {"bounds": sent.text("bounds")} if sent.text("bounds") else {}
        return {"x": ticked} | ({"y": label} if self.supervised else {}) | bounds | super().parameters(sent)

    def page_values(self, known: Facts, sent: Fields) -> dict[str, Any]:
        """The columns, those that may be predicted, and what was ticked."""
        labels = self.labels(known) if self.supervised else []
        return super().page_values(known, sent) | {
            "labels": labels, "ticked": set(sent.all("x")), "label": sent.text("y"), "bounds": sent.text("bounds"),
        }  # fmt: skip


class ReleaseForm(JobForm):
    """What a release's page asks for."""

    kinds = ("release", "selection")
    noun = "release"

    def parameters(self, sent: Fields) -> dict[str, object]:
        """The job's parameters and how its files are written."""
        written = sent.text("written")
        if written and written not in dict(FILE_KINDS):
            raise mistake("There are no such files.", "Choose Parquet or CSV.")
        return super().parameters(sent) | ({"written": written} if written else {})

    def page_values(self, known: Facts, sent: Fields) -> dict[str, Any]:
        """The columns, and how files may be written."""
        return super().page_values(known, sent) | {"files": FILE_KINDS if self.kind == "release" else ()}


def mistake(message: str, remedy: str) -> Refusal:
    """The refusal of a form before a job starts."""
    return Refusal(400, "bad-parameter", message, remedy)


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One parameter as a form shows it; `widget` is text, number(s), whole, truth, choice, either, texts or spend."""

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
        either = widget == "truth" and usual is None  # yes, no, or neither said
        found.append(
            SchemaField(
                name=name,
                title=given.get("title") or name,
                words="" if widget == "spend" else given.get("description") or part.get("description") or "",
                widget="either" if either else widget,
                # A price that may be left out has another way to be named, which no form holds: here it is asked for.
                required=name in schema.get("required", ()) or widget == "spend",
                value="" if usual is None else str(usual),
                choices=("yes", "no") if either else tuple(map(str, part.get("enum", ()))),
            )
        )
    return found


def schema_parameters(shown: list[SchemaField], fields: Fields, budget: Budget) -> dict[str, object]:
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
    if one.widget in ("text", "choice", "either"):
        return text == "yes" if one.widget == "either" else text
    several, kind = one.widget == "numbers", int if one.widget == "whole" else float
    try:
        numbers = [kind(part) for part in (text.split(",") if several else [text])]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):  # nor does JSON have these
        what, how = ("numbers", "such as 0.1, 2") if several else ("a number", "such as 0.1")
        why = f"{one.title} {'are' if several else 'is'} {what}."
        raise Refusal(400, "bad-request", why, f"Write {'them' if several else 'it'} with a point, {how}.")
    if several:
        return numbers
    (number,) = numbers
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
        return {"string": "texts", "number": "numbers"}.get(part["items"].get("type"))
    return WIDGETS.get(part.get("type", ""))
