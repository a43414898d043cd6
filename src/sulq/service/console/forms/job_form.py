"""Forms of learners and releases, from what the API says of their signatures, and a job's parameters from the reply."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

from sulq.errors import QuestionError
from sulq.forms.signature import Field
from sulq.language.domain import Bool, Category, Column, Int, Real, Text
from sulq.language.facts import Facts
from sulq.service.console.api import Tree
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal

MAX_CLASSES: Final = 100  # values of an integer column that may be predicted as classes
FILE_KINDS: Final = (("parquet", "Parquet"), ("csv", "CSV"))
GROUPS: Final = {  # of each kind of form: the title and text of its group in a list
    "unsupervised": ("Find structure", "No column is predicted."),
    "classifier": ("Predict a class", "The label is a category, a truth value or a small whole number."),
    "regressor": ("Predict a number", "The label is a number."),
    "release": ("Publish", "An object that anybody may use for ever; using it costs nothing more."),
    "selection": ("Choose", "Of many public candidates the one that is about the best, and nothing else."),
}


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
class JobForm:
    """What a page asks for; `kinds` are the kinds of form that the page shows."""

    kinds: ClassVar[tuple[str, ...]] = ()
    noun: ClassVar[str] = "form"
    name: str
    title: str
    words: str
    kind: str
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
        return named(self.fields, sent)

    def page_values(self, known: Facts, sent: Fields) -> dict[str, object]:
        """What its page shows besides the fields."""
        return {"columns": self.columns(known)}


class LearnForm(JobForm):
    """What a learner's page asks for."""

    kinds = ("unsupervised", "classifier", "regressor")
    noun = "learner"

    @property
    def supervised(self) -> bool:
        """Whether there is a column to predict."""
        return self.kind != "unsupervised"

    def labels(self, known: Facts) -> list[tuple[str, Column]]:
        """The columns that may be predicted: those with classes, or numbers."""
        fits = _has_classes if self.kind == "classifier" else _is_number
        return [(name, column) for name, column in self.columns(known) if fits(column)]

    def parameters(self, sent: Fields) -> dict[str, object]:
        """The job's columns and parameters that a sent form names; what was not changed keeps its default."""
        ticked, label = sent.all("x"), sent.text("y")
        if self.supervised and not label:
            raise mistake("The column to predict is missing.", "Choose one, then start again.")
        if not [name for name in ticked if name != label]:
            raise mistake("There are no columns to learn from.", "Tick at least one, then start again.")
        if label in ticked:
            raise mistake(f"{label} is to be predicted: it cannot be learned from as well.", "Untick it in the list.")
        return {"x": ticked} | ({"y": label} if self.supervised else {}) | named(self.fields, sent)

    def page_values(self, known: Facts, sent: Fields) -> dict[str, object]:
        """The columns, those that may be predicted, and what was ticked."""
        return {
            "columns": self.columns(known),
            "labels": self.labels(known) if self.supervised else [],
            "ticked": set(sent.all("x")),
            "label": sent.text("y"),
        }


class ReleaseForm(JobForm):
    """What a release's page asks for."""

    kinds = ("release", "selection")
    noun = "release"

    def parameters(self, sent: Fields) -> dict[str, object]:
        """The job's parameters and how its files are written."""
        written = sent.text("written")
        if written and written not in dict(FILE_KINDS):
            raise mistake("There are no such files.", "Choose Parquet or CSV.")
        return named(self.fields, sent) | ({"written": written} if written else {})

    def page_values(self, known: Facts, sent: Fields) -> dict[str, object]:
        """The columns, and how files may be written."""
        return {"columns": self.columns(known), "files": FILE_KINDS if self.kind == "release" else ()}


def named(fields: Iterable[FormField], sent: Fields) -> dict[str, object]:
    """The parameters that a sent form names; what was not changed keeps its default."""
    found: dict[str, object] = {}
    for field in fields:
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


def mistake(message: str, remedy: str) -> Refusal:
    """The refusal of a form before a job starts."""
    return Refusal(400, "bad-parameter", message, remedy)


def _has_classes(column: Column) -> bool:
    return isinstance(column, (Bool, Category)) or (isinstance(column, Int) and column.hi - column.lo < MAX_CLASSES)


def _is_number(column: Column) -> bool:
    return isinstance(column, (Int, Real))
