"""The fields of a form that the API tells, as a page asks for them, and the values that come back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sulq.errors import QuestionError
from sulq.forms import signature
from sulq.service.console.api import Tree
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal
from sulq.service.console.visit import rows


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter as the page asks for it."""

    asked: signature.Field

    @property
    def name(self) -> str:
        """The parameter's own name."""
        return self.asked.name

    @property
    def key(self) -> str:
        """Its name in the form that is sent."""
        return f"p-{self.asked.name}"

    @property
    def title(self) -> str:
        """Its name in words."""
        return self.asked.name.replace("_", " ").capitalize()

    @property
    def words(self) -> str:
        """What it does; of a list besides how it is written."""
        said, how = self.asked.help, replace(self.asked, optional=False).takes
        several = self.depth > 0 and self.widget in ("text", "area")
        parts = [said, f"{how}." if several else ""] if said else [self.asked.takes]
        return " ".join(part[:1].upper() + part[1:] for part in parts if part).replace("`", "")

    @property
    def widget(self) -> str:
        """How it is asked for: check, choice, column, columns, area or text."""
        kind, depth = self.asked.kind, self.asked.depth
        if kind == "column" and depth < 2:
            return "columns" if depth else "column"
        if kind == "text" and depth == 1:
            return "area"
        return {"flag": "check", "choice": "choice"}.get(kind, "text")

    @property
    def depth(self) -> int:
        """How many lists are around it."""
        return self.asked.depth

    @property
    def plain(self) -> bool:
        """Whether it is one number and nothing else."""
        return self.asked.kind in ("whole", "number") and not self.asked.choices and not self.asked.depth

    @property
    def value(self) -> str:
        """Its default, as it stands in the field."""
        usual = self.asked.default
        return "" if usual is None else "yes" if usual is True else str(usual)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it may be."""
        return self.asked.choices

    @property
    def optional(self) -> bool:
        """Whether it may be left open."""
        return self.asked.optional

    @property
    def required(self) -> bool:
        """Whether it must be named."""
        return self.asked.required

    def read(self, text: str) -> object:
        """What a field's text stands for; the API checks it once more."""
        try:
            return self.asked.read(text.replace("\r\n", "\n"))
        except QuestionError:
            raise mistake(f"{self.title} is {self.asked.takes}.", "Correct it, then start again.") from None


def fields_of(told: Tree) -> tuple[Field, ...]:
    """The fields of a form."""
    return tuple(Field(signature.Field.from_json(item)) for item in rows(told, "fields"))


def chosen(fields: Iterable[Field], sent: Fields) -> dict[str, object]:
    """The parameters that a sent form names; what was not changed keeps its default."""
    found: dict[str, object] = {}
    for field in fields:
        text = sent.get(field.key)
        if field.widget == "check":
            found[field.name] = text == "yes"
        elif field.widget == "columns":
            found |= {field.name: sent.all(field.key)} if sent.all(field.key) else {}
        elif text is not None and text.strip() != field.value:
            found[field.name] = field.read(text)
        if field.required and field.name not in found:
            what = "Choose one" if field.widget in ("column", "columns") else "Fill it in"
            raise mistake(f"{field.title} is missing.", f"{what}, then start again.")
    return found


def mistake(message: str, remedy: str) -> Refusal:
    """The refusal of a form before a job starts."""
    return Refusal(400, "bad-parameter", message, remedy)
