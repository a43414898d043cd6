"""A form, read off a signature: what the command line, the server's jobs and the console ask for.

A parameter's annotation says its kind, its default what is filled in, and its line in the docstring
what it does. One that no form can hold (an array, a row function) stays at its default there; Python sets it.
"""

from __future__ import annotations

import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, Self

from sulq.errors import QuestionError

Kind = Literal["whole", "number", "choice", "text", "column", "flag"]
Value = bool | float | str | list[Any] | None
_KINDS: Final[dict[object, Kind]] = {bool: "flag", int: "whole", float: "number", str: "text"}
_WORDS: Final[dict[Kind, tuple[str, str, str]]] = {  # alone, in a list, in a list of lists
    "whole": ("a whole number", "whole numbers: 1, 2", "lists of whole numbers: 1, 2; 3, 4"),
    "number": ("a number", "numbers: 0.5, 2", "lists of numbers: 1, 0; 0.5, 2"),
    "choice": ("", "", ""),
    "text": ("text", "texts with a semicolon or an empty line between them", "lists of names: a, b; b, c"),
    "column": ("a column", "columns: a, b", "lists of columns: a, b; b, c"),
    "flag": ("true or false", "", ""),
}
_TRUTH: Final = {"true": True, "yes": True, "false": False, "no": False}
MAX_TEXT_CHARACTERS: Final = 1000  # characters of a parameter
MAX_ITEM_CHARACTERS: Final = 20_000  # of a text in a list, such as a query
MAX_ITEMS: Final = 4096  # items of a list
MAX_WORDS_CHARACTERS: Final = 300  # characters of what is said about what is asked for
NOT_ASKED: Final = frozenset({"self", "db", "spend", "progress", "timeout"})  # what a door brings itself
# Parameters that name columns of the table, in whatever signature: a page has them ticked.
COLUMNS: Final = frozenset(
    {"attributes", "bids", "candidates", "columns", "hypotheses", "labels", "marginals", "ranges"}
)
_TEXTS: Final = re.compile(r"""((?:'[^']*'|"[^"]*"|[^;'"\n]|\n(?![ \t]*\n)|['"])+)""")  # a semicolon in quotes is text
# Where a section of a docstring begins that is no introduction.
_LABEL: Final = re.compile(r"(?m)^(?:Args|Parameters?|Privacy|Accuracy|Source|Attributes|Examples?|Raises):")


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter: its kind, the words it may be besides, whether it may be left open, and what it does."""

    name: str
    kind: Kind
    default: Value
    help: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False  # None is a value of its own
    required: bool = False
    depth: int = 0  # 1 for a list, 2 for a list of lists

    @property
    def takes(self) -> str:
        """What it takes, in words."""
        said = [_WORDS[self.kind][self.depth], *self.choices, "nothing" if self.optional else ""]
        return " or ".join(word for word in said if word)

    def check(self, value: object) -> Value:
        """A value as JSON gives it, of the parameter's own kind.

        Raises:
            QuestionError: `bad-parameter`: it is of another kind.
        """
        if isinstance(value, str) and value in self.choices:
            good = True
        elif value is None:
            good = self.optional
        else:
            good = self._fits(value, self.depth)
        if not good:
            raise QuestionError("bad-parameter", f"{self.name} is {self.takes}.")
        return typing.cast("Value", value)

    def _fits(self, value: object, depth: int) -> bool:
        if depth:
            several = isinstance(value, list) and len(value) <= MAX_ITEMS
            return several and all(self._fits(item, depth - 1) for item in typing.cast("list[object]", value))
        if isinstance(value, str):
            return self.kind in ("text", "column") and len(value) <= self.longest
        if isinstance(value, bool):
            return self.kind == "flag"
        if isinstance(value, (int, float)):
            right = self.kind == "number" or (self.kind == "whole" and isinstance(value, int))
            return right and math.isfinite(value)
        return False

    @property
    def longest(self) -> int:
        """Characters that a text of it may have."""
        return MAX_ITEM_CHARACTERS if self.depth == 1 and self.kind == "text" else MAX_TEXT_CHARACTERS

    def read(self, text: str) -> Value:
        """The value that a word on the command line, or in a form, stands for."""
        word = text.strip()
        if word in self.choices:
            return word
        if self.optional and word.lower() in ("", "none", "nothing"):
            return None
        return self.check(self._read(word, self.depth))

    def _read(self, word: str, depth: int) -> object:
        if depth == 2:
            return [self._read(part, 1) for part in re.split(r"[;\n]", word) if part.strip()]
        if depth == 1:
            parts = _TEXTS.findall(word) if self.kind == "text" and self.depth == 1 else word.split(",")
            return [self._read(part.strip(), 0) for part in parts if part.strip()]
        try:
            if self.kind == "flag":
                return _TRUTH.get(word.lower(), word)
            if self.kind == "whole":
                return int(word)
            if self.kind == "number":  # 3 stays whole: for some learners 1 and 1.0 are not the same wish
                return int(word) if re.fullmatch(r"[+-]?\d{1,18}", word) else float(word)
        except ValueError:
            pass
        return word

    def to_json(self) -> dict[str, object]:
        """As a door shows it."""
        return {**asdict(self), "choices": list(self.choices), "takes": self.takes}

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Self:
        """The field that a door showed."""
        told = {field.name: tree[field.name] for field in fields(cls)}
        return cls(**told | {"choices": tuple(tree["choices"])})


@dataclass(frozen=True, slots=True)
class Form:
    """What a learner or a release asks for besides the data and the spend."""

    name: str
    title: str
    words: str
    kind: str  # unsupervised, classifier, regressor; release, selection
    fields: tuple[Field, ...]

    @property
    def supervised(self) -> bool:
        """Whether there is a column to predict."""
        return self.kind in ("classifier", "regressor")

    def to_json(self) -> dict[str, object]:
        """As a door shows it."""
        return {"kind": self.kind, "words": self.words, "fields": [field.to_json() for field in self.fields]}


def form_of(what: Callable[..., object], kind: str) -> Form:
    """The form of a function; the database, the spend and the progress are the door's own to bring."""
    return signed(what.__name__, kind, what, [inspect.getdoc(what) or ""])


def signed(name: str, kind: str, call: Callable[..., object], texts: list[str]) -> Form:
    """The form of a signature: the first text introduces it, all of them say what its parameters do."""
    opening = texts[0]
    second = _LABEL.split(opening.partition("\n\n")[2].partition("\n\n")[0])[0]
    parameters = inspect.signature(call).parameters.values()
    found = (_field(each, call, texts) for each in parameters if each.name not in NOT_ASKED)
    return Form(
        name=name,
        title=opening.partition("\n")[0].rstrip("."),
        words=_opening(" ".join(second.split())),
        kind=kind,
        fields=tuple(field for field in found if field is not None),
    )


def _hint(parameter: inspect.Parameter, call: Callable[..., object]) -> object:
    """A parameter's type; of a name that only the type checker knows, its default's."""
    alone = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return typing.get_type_hints(alone, getattr(inspect.unwrap(call), "__globals__", {}))[parameter.name]
    except NameError:
        return type(parameter.default)


def _field(parameter: inspect.Parameter, call: Callable[..., object], texts: list[str]) -> Field | None:
    """A parameter as a field; None where no form can hold it."""
    shapes: set[tuple[Kind, int]] = set()
    choices: list[str] = []
    optional = False
    for option in _options(_hint(parameter, call)):
        if option is None or option is types.NoneType:
            optional = True
        elif typing.get_origin(option) is Literal:
            words = typing.get_args(option)
            optional = optional or None in words
            choices += [word for word in words if isinstance(word, str)]
        elif (shape := _shape(option)) is not None:
            shapes.add(shape)
    shapes -= {("whole", depth) for kind, depth in shapes if kind == "number"}
    if len(shapes) > 1 or not (shapes or choices):
        return None
    name, default = parameter.name, parameter.default
    required = default is inspect.Parameter.empty
    usual = None if required else default
    if not (usual is None or isinstance(usual, (bool, int, float, str))):
        return None
    kind, depth = next(iter(shapes), ("choice", 0))
    if kind == "text" and name in COLUMNS:
        kind = "column"
    return Field(name, kind, usual, _help(name, texts), tuple(choices), optional, required, depth)


def _shape(option: object) -> tuple[Kind, int] | None:
    """The kind of what a type holds, and how many lists are around it; None where no form can hold it."""
    if option in _KINDS:
        return _KINDS[option], 0
    if typing.get_origin(option) is not list:
        return None
    inner = _shape(typing.get_args(option)[0])
    return None if inner is None or inner[1] > 1 or inner[0] == "flag" else (inner[0], inner[1] + 1)


def _options(hint: object) -> Iterable[object]:
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
    return paragraph[: max([end for end in ends if end <= MAX_WORDS_CHARACTERS] or ends[:1] or [len(paragraph)])]
