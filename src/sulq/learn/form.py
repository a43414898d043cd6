"""A learner's form, read off its signature: what the command line, the server's jobs and the console ask for.

A parameter's annotation says its kind, its default what is filled in, and its line in the docstring
what it does. One that no form can hold (an array, say) stays at its default there; Python sets it.
"""

from __future__ import annotations

import inspect
import math
import re
import types
import typing
from dataclasses import dataclass
from typing import Final, Literal

from sulq.errors import QuestionError
from sulq.learn.base import Learner, parameters

Kind = Literal["whole", "number", "choice", "text", "flag"]
_KINDS: Final[dict[object, Kind]] = {bool: "flag", int: "whole", float: "number", str: "text"}
_WORDS: Final[dict[Kind, str]] = {
    "whole": "a whole number",
    "number": "a number",
    "choice": "",
    "text": "text",
    "flag": "true or false",
}
_TRUTH: Final = {"true": True, "yes": True, "false": False, "no": False}
LONGEST: Final = 1000  # characters of a parameter
SAID: Final = 300  # characters of what is said about a learner


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter: its kind, the words it may be besides, whether it may be left open, and what it does."""

    name: str
    kind: Kind
    default: bool | float | str | None
    help: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False  # None is a value of its own
    required: bool = False

    @property
    def takes(self) -> str:
        """What it takes, in words."""
        said = [_WORDS[self.kind], *self.choices, "nothing" if self.optional else ""]
        return " or ".join(word for word in said if word)

    def check(self, value: object) -> bool | float | str | None:
        """A value as JSON gives it, of the parameter's own kind.

        Raises:
            QuestionError: `bad-parameter`: it is of another kind.
        """
        if isinstance(value, str):
            good = value in self.choices or (self.kind == "text" and len(value) <= LONGEST)
        elif isinstance(value, bool):
            good = self.kind == "flag"
        elif isinstance(value, (int, float)):
            good = self.kind == "number" or (self.kind == "whole" and isinstance(value, int))
            good = good and math.isfinite(value)
        else:
            good = value is None and self.optional
        if not good:
            raise QuestionError("bad-parameter", f"{self.name} is {self.takes}.")
        return typing.cast("bool | float | str | None", value)

    def read(self, text: str) -> bool | float | str | None:
        """The value that a word on the command line, or in a form, stands for."""
        word = text.strip()
        if word in self.choices:
            return word
        if self.optional and word.lower() in ("", "none", "nothing"):
            return None
        found: object = word
        try:
            if self.kind == "flag":
                found = _TRUTH.get(word.lower(), word)
            elif self.kind == "whole":
                found = int(word)
            elif self.kind == "number":  # 3 stays whole: for some learners 1 and 1.0 are not the same wish
                found = int(word) if re.fullmatch(r"[+-]?\d{1,18}", word) else float(word)
        except ValueError:
            pass
        return self.check(found)

    def to_json(self) -> dict[str, object]:
        """As a door shows it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "default": self.default,
            "help": self.help,
            "choices": list(self.choices),
            "optional": self.optional,
            "required": self.required,
            "takes": self.takes,
        }


@dataclass(frozen=True, slots=True)
class Form:
    """What a learner asks for: columns, a label where it is supervised, a spend, and its parameters."""

    name: str
    title: str
    words: str
    kind: str  # unsupervised, classifier or regressor
    fields: tuple[Field, ...]

    @property
    def supervised(self) -> bool:
        """Whether there is a column to predict."""
        return self.kind != "unsupervised"

    def to_json(self) -> dict[str, object]:
        """As a door shows it."""
        return {"kind": self.kind, "words": self.words, "fields": [field.to_json() for field in self.fields]}


def form(learner: type[Learner]) -> Form:
    """The form of a learner."""
    text = inspect.getdoc(learner) or ""
    paragraph = " ".join(text.partition("\n\n")[2].partition("\n\n")[0].split())
    hints = _hints(learner)
    texts = [text, inspect.getdoc(learner.__init__) or ""]
    fields = (
        _field(name, default, hints.get(name, type(default)), texts) for name, default in parameters(learner).items()
    )
    return Form(
        name=learner.__name__,
        title=text.partition("\n")[0].rstrip("."),
        words="" if _labelled(paragraph) else _opening(paragraph),
        kind=learner.kind,
        fields=tuple(field for field in fields if field is not None),
    )


def _hints(learner: type[Learner]) -> dict[str, object]:
    try:
        return typing.get_type_hints(learner.__init__)
    except NameError:  # a name that only the type checker knows: the defaults say the kinds
        return {}


def _field(name: str, default: object, hint: object, texts: list[str]) -> Field | None:
    """A parameter as a field; None where no form can hold it."""
    kinds: set[Kind] = set()
    choices: list[str] = []
    optional = False
    for option in _options(hint):
        if option is None or option is types.NoneType:
            optional = True
        elif typing.get_origin(option) is Literal:
            words = typing.get_args(option)
            optional = optional or None in words
            choices += [word for word in words if isinstance(word, str)]
        elif option in _KINDS:
            kinds.add(_KINDS[option])
        else:
            continue  # an option no form can hold; the others remain
    if {"whole", "number"} <= kinds:
        kinds.remove("whole")
    if len(kinds) > 1 or not (kinds or choices):
        return None
    required = default is inspect.Parameter.empty
    usual = None if required else default
    if not (usual is None or isinstance(usual, (bool, int, float, str))):
        return None
    kind: Kind = next(iter(kinds), "choice")
    return Field(name, kind, usual, _help(name, texts), tuple(choices), optional=optional, required=required)


def _options(hint: object) -> tuple[object, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(inner for option in typing.get_args(hint) for inner in _options(option))
    if typing.get_origin(hint) is typing.Annotated:
        return _options(typing.get_args(hint)[0])
    return (hint,)


def _help(name: str, texts: list[str]) -> str:
    """The line of a docstring that begins with the parameter's name, and those indented below it."""
    begun = re.compile(rf"^(\s*)(?:[-*] +)?`{{0,2}}{re.escape(name)}`{{0,2}}(?:\s*\([^)]*\))?: +(.*)$")
    for text in texts:
        lines = text.splitlines()
        for i, line in enumerate(lines):
            found = begun.match(line)
            if found is None:
                continue
            said = [found[2]]
            for more in lines[i + 1 :]:
                if not more.strip() or len(more) - len(more.lstrip()) <= len(found[1]):
                    break
                said.append(more.strip())
            return " ".join(said)
    return ""


def _opening(paragraph: str) -> str:
    """The first sentences of a paragraph, as many as fit a few lines; one at least."""
    ends = [found.end() for found in re.finditer(r"[.?!](?= |$)", paragraph)]
    return paragraph[: max([end for end in ends if end <= SAID] or ends[:1] or [len(paragraph)])]


def _labelled(paragraph: str) -> bool:
    """Whether a paragraph of a docstring is a section of its own rather than an introduction."""
    return re.match(r"(Args|Parameters|Privacy|Accuracy|Source|Attributes|Example)s?:", paragraph) is not None
