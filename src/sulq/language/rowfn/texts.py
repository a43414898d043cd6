"""Row functions of free text: of code points, with ASCII letters as the only ones that have two cases.

Nothing here depends on a locale or a version of Unicode, so every engine gives
the same text. Patterns and other texts of a function are constants; matching
takes time linear in the row's text, whatever the text and the pattern: at most some
nanoseconds for each of its characters and each of the pattern's (T74, T100).
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import MAX_CELL_LENGTH, Schema
from sulq.language.kinds import Cells, Frame, Scalar, Truth, Words, union
from sulq.language.rowfn.base import RowFn, describe, evaluate, is_whole, literal
from sulq.language.rowfn.piece import Piece, joined

if TYPE_CHECKING:
    from sulq.language.rowfn.writer import SqlWriter

MAX_JOINED_LENGTH: Final = MAX_CELL_LENGTH  # characters that are left of a text put together, and of each of its parts
MAX_TEXT_PLACE: Final = MAX_JOINED_LENGTH  # a length or place past this counts as this
MAX_JOINED_TEXTS: Final = 100
MAX_PATTERN_LENGTH: Final = 1000
MAX_WILDCARDS: Final = 100
MAX_SEARCH_STEPS: Final = 2_000  # characters of a text times those of a segment: so few are tried one by one
BYTES: Final = ("utf-8", "surrogatepass")  # half a character must not raise either (T30)
ANY: Final = None  # one character, whatever it is
FAR: Final = 2**29  # past the end of every text, and within 32 bits twice over
PLAIN: Final = frozenset(string.ascii_letters + string.digits + string.whitespace + "_")
THERE: Final = "CASE WHEN {0} IS NOT NULL THEN TRUE END"


def words(fn: RowFn, schema: Schema) -> Words:
    """The kind of a row function used as text."""
    kind = fn.kind(schema)
    if not isinstance(kind, Words):
        raise QuestionError("wrong-kind", f"{describe(fn)} is not text.")
    return kind


def _text(what: str) -> Callable[[object], str]:
    """What reads a constant text of a question, or refuses it by this name."""

    def read(value: object) -> str:
        found = literal(value)
        if not isinstance(found, str):
            raise QuestionError("bad-literal", f"{what} is a text.")
        return found

    return read


@dataclass(frozen=True, slots=True, eq=False)
class _OfText(RowFn, item="The text"):
    """A Python function (`act`) of each row's text; what stands in a missing cell is not looked at."""

    item: RowFn
    cell: ClassVar[type] = object  # what `act` gives

    def act(self, text: str) -> object:
        """The function of one text."""
        raise NotImplementedError  # pragma: no cover - every node has its own

    def cells(self, frame: Frame) -> Cells:
        cells = evaluate(self.item, frame)
        none = np.zeros(frame.size, dtype=np.bool_) if cells.missing is None else cells.missing
        act, blank = self.act, self.act("")
        found = (blank if gone else act(str(text)) for text, gone in zip(cells.values, none, strict=True))
        return Cells(np.fromiter(found, dtype=self.cell, count=frame.size), cells.missing)


@dataclass(frozen=True, slots=True, eq=False)
class _Changed(_OfText):
    """Text made of text, no longer than that."""

    def kind(self, schema: Schema) -> Words:
        return words(self.item, schema)


@dataclass(frozen=True, slots=True, eq=False)
class _Place(_OfText):
    """A number of characters, at most 2^20."""

    cell: ClassVar[type] = np.float64

    def kind(self, schema: Schema) -> Scalar:
        return Scalar(Fraction(0), Fraction(MAX_TEXT_PLACE), Fraction(1), words(self.item, schema).nullable)


@dataclass(frozen=True, slots=True, eq=False)
class _Matches(_OfText):
    """A condition on text."""

    cell: ClassVar[type] = np.bool_

    def kind(self, schema: Schema) -> Truth:
        return Truth(words(self.item, schema).nullable)


def _cased(writer: SqlWriter, item: RowFn, name: str, letters: tuple[str, str]) -> Piece:
    """Text of as many bytes as characters is ASCII, of which DuckDB's own fast function is right."""
    other = f"translate({{0}}, '{letters[0]}', '{letters[1]}')"
    form = f"CASE WHEN strlen({{0}}) = length({{0}}) THEN {name}({{0}}) ELSE {other} END"
    return joined(form, writer.named(writer.words(item)))


def _place(writer: SqlWriter, item: Piece) -> Piece:
    form = f"CAST(CASE WHEN {{0}} > {MAX_TEXT_PLACE} THEN {MAX_TEXT_PLACE} ELSE {{0}} END AS DOUBLE)"
    return joined(form, writer.named(item))


@dataclass(frozen=True, slots=True, eq=False)
class Lowered(_Changed):
    """Text with its ASCII letters in lower case; all other characters as they are."""

    def act(self, text: str) -> str:
        return text.encode(*BYTES).lower().decode(*BYTES)

    def sql(self, writer: SqlWriter) -> Piece:
        return _cased(writer, self.item, "lower", (string.ascii_uppercase, string.ascii_lowercase))


@dataclass(frozen=True, slots=True, eq=False)
class Uppered(_Changed):
    """Text with its ASCII letters in upper case; all other characters as they are."""

    def act(self, text: str) -> str:
        return text.encode(*BYTES).upper().decode(*BYTES)

    def sql(self, writer: SqlWriter) -> Piece:
        return _cased(writer, self.item, "upper", (string.ascii_lowercase, string.ascii_uppercase))


@dataclass(frozen=True, slots=True, eq=False)
class Trimmed(_Changed, characters=_text("What is trimmed off")):
    """Text without the given characters at its ends: spaces, unless others are named."""

    side: Literal["both", "left", "right"] = "both"
    characters: str = " "

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if self.side not in ("both", "left", "right"):
            raise QuestionError("bad-question", "Text is trimmed on the left, the right or both sides.")

    def act(self, text: str) -> str:
        strip = str.strip if self.side == "both" else str.lstrip if self.side == "left" else str.rstrip
        return strip(text, self.characters)

    def sql(self, writer: SqlWriter) -> Piece:
        if not self.characters:
            return writer.words(self.item)
        name = {"both": "trim", "left": "ltrim", "right": "rtrim"}[self.side]
        return joined(f"{name}({{0}}, {{1}})", writer.words(self.item), writer.parameter(self.characters))


@dataclass(frozen=True, slots=True, eq=False)
class Length(_Place):
    """How many characters (code points) a text has, at most 2^20."""

    def act(self, text: str) -> int:
        return min(len(text), MAX_TEXT_PLACE)

    def sql(self, writer: SqlWriter) -> Piece:
        return _place(writer, joined("length({0})", writer.words(self.item)))


@dataclass(frozen=True, slots=True, eq=False)
class IndexOf(_Place, needle=_text("What is looked for")):
    """The place of a constant text in another, counted in characters from 1; 0 where it does not occur."""

    needle: str

    def act(self, text: str) -> int:
        return min(text.find(self.needle) + 1, MAX_TEXT_PLACE)

    def sql(self, writer: SqlWriter) -> Piece:
        return _place(writer, joined("instr({0}, {1})", writer.words(self.item), writer.parameter(self.needle)))


@dataclass(frozen=True, slots=True, eq=False)
class Substring(_OfText):
    """The characters from place `start` (from 1) on, `length` of them; places before the first hold nothing."""

    start: int
    length: int | None = None

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if not all(
            is_whole(value, 1 - 2**31, 2**31 - 1) for value in (self.start, 0 if self.length is None else self.length)
        ):
            raise QuestionError("bad-literal", "A place and a length in a text are whole numbers below 2^31.")
        if self.length is not None and self.length < 0:
            raise QuestionError("bad-literal", "A text has no negative length.")

    def span(self) -> tuple[int, int | None]:
        """How many characters are left out, and how many at most are taken."""
        first = max(self.start - 1, 0)
        return first, None if self.length is None else max(self.start - 1 + self.length - first, 0)

    def kind(self, schema: Schema) -> Words:
        whole, (first, many) = words(self.item, schema), self.span()
        left = max(whole.longest - first, 0)
        return Words(whole.nullable, left if many is None else min(left, many))

    @property
    def act(self) -> Callable[[str], str]:
        """The function of one text, its span worked out once."""
        first, many = self.span()
        last = None if many is None else first + many
        return lambda text: text[first:last]

    def sql(self, writer: SqlWriter) -> Piece:
        first, many = self.span()
        length = "" if many is None else f", {min(many, FAR)}"
        return joined(f"substr({{0}}, {min(first, FAR) + 1}{length})", writer.words(self.item))


@dataclass(frozen=True, slots=True, eq=False)
class Concat(RowFn, items="A text"):
    """Texts one after the other, cut after 10,000 characters, as each of them is; missing where any is.

    Nothing else makes a text longer, so no tower of derived tables can make one
    row's text fill the memory, and so tell that there is such a row (T30, T74).
    """

    items: tuple[RowFn, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.items) <= MAX_JOINED_TEXTS:
            raise QuestionError("bad-question", f"1 to {MAX_JOINED_TEXTS} texts are put together.")
        RowFn.__post_init__(self)

    def kind(self, schema: Schema) -> Words:
        kinds = [words(item, schema) for item in self.items]
        return Words(any(kind.nullable for kind in kinds), min(sum(kind.longest for kind in kinds), MAX_JOINED_LENGTH))

    def cells(self, frame: Frame) -> Cells:
        several = [evaluate(item, frame) for item in self.items]
        missing = union(*(cells.missing for cells in several))
        none = np.zeros(frame.size, dtype=np.bool_) if missing is None else missing
        rows = zip(none, *(cells.values for cells in several), strict=True)
        found = (
            "" if gone else "".join(str(text)[:MAX_JOINED_LENGTH] for text in texts)[:MAX_JOINED_LENGTH]
            for gone, *texts in rows
        )
        return Cells(np.fromiter(found, dtype=object, count=frame.size), missing)

    def sql(self, writer: SqlWriter) -> Piece:
        form = " || ".join(f"substr({{{i}}}, 1, {MAX_JOINED_LENGTH})" for i in range(len(self.items)))
        return joined(f"substr({form}, 1, {MAX_JOINED_LENGTH})", *map(writer.words, self.items))


@dataclass(frozen=True, slots=True, eq=False)
class StartsWith(_Matches, prefix=_text("A beginning")):
    """Whether a text begins with a constant one."""

    prefix: str

    def act(self, text: str) -> bool:
        return text.startswith(self.prefix)

    def sql(self, writer: SqlWriter) -> Piece:
        if not self.prefix:  # DuckDB takes the condition for true then, also where the text is NULL
            return joined(THERE, writer.words(self.item))
        return joined("starts_with({0}, {1})", writer.words(self.item), writer.parameter(self.prefix))


@dataclass(frozen=True, slots=True, eq=False)
class Like(_Matches, pattern=_text("A pattern"), escape=_text("An escape")):
    r"""Whether a text is of a constant pattern: % stands for any text, _ for any one character.

    `escape` makes the next character stand for itself ("" for no escape).
    """

    pattern: str
    escape: str = "\\"

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if len(self.escape) > 1:
            raise QuestionError("bad-literal", "An escape is one character or none.")
        if len(self.pattern) > MAX_PATTERN_LENGTH or self.pattern.count("%") + self.pattern.count("_") > MAX_WILDCARDS:
            raise QuestionError(
                "too-large", f"A pattern has at most {MAX_PATTERN_LENGTH} characters, {MAX_WILDCARDS} wild."
            )
        self.segments()

    def segments(self) -> tuple[tuple[str | None, ...], ...]:
        """What stands between the % of the pattern: characters, None for any one."""
        return segments(self.pattern, self.escape)

    @property
    def act(self) -> Callable[[str], bool]:
        """The function of one text, its pattern read once."""
        return matcher(self.segments())

    def sql(self, writer: SqlWriter) -> Piece:
        """By the simplest function that decides the pattern; else by an automaton, in linear time whatever it is."""
        item, segments = writer.words(self.item), self.segments()
        texts = ["".join(sign for sign in segment if sign is not ANY) for segment in segments]
        if not any(ANY in segment for segment in segments):
            match texts:
                case [text]:
                    return joined("({0} = {1})", item, writer.parameter(text))
                case ["", ""]:
                    return joined(THERE, item)
                case [text, ""]:
                    return joined("starts_with({0}, {1})", item, writer.parameter(text))
                case ["", text]:
                    return joined("suffix({0}, {1})", item, writer.parameter(text))
                case ["", text, ""]:
                    return joined("contains({0}, {1})", item, writer.parameter(text))
            if not any(sign in text for text in texts for sign in "%_"):
                return joined("({0} ~~ {1})", item, writer.parameter("%".join(texts)))  # linear where there is no _
        inner = ["".join("." if sign is ANY else _escaped(sign) for sign in segment) for segment in segments]
        start, end = "" if not segments[0] else "\\A", "" if not segments[-1] else "\\z"
        pattern = start + ".*".join(part for part in inner if part) + end
        return joined("regexp_matches({0}, {1}, 's')", item, writer.parameter(pattern))


def _escaped(sign: str) -> str:
    """A character that stands for itself in a regular expression of DuckDB's."""
    return sign if sign in PLAIN or not sign.isascii() else f"\\{sign}"


def segments(pattern: str, escape: str) -> tuple[tuple[str | None, ...], ...]:
    """A pattern of LIKE, cut at its %."""
    found: list[list[str | None]] = [[]]
    signs = iter(pattern)
    for sign in signs:
        if escape and sign == escape:
            plain = next(signs, None)
            if plain is None:
                raise QuestionError("bad-literal", "A pattern must not end with its escape.")
            found[-1].append(plain)
        elif sign == "%":
            found.append([])
        else:
            found[-1].append(ANY if sign == "_" else sign)
    return tuple(map(tuple, found))


def expression(segment: tuple[str | None, ...]) -> str:
    """A segment as a regular expression without repetition."""
    return "".join("." if sign is ANY else re.escape(sign) for sign in segment)


@functools.lru_cache(maxsize=256)
def matcher(parts: tuple[tuple[str | None, ...], ...]) -> Callable[[str], bool]:
    """Match by taking the leftmost place of each segment in turn: no choice is ever taken back.

    If any choice of places matches, the leftmost does: what is left of the text is
    longest. The first segment stands at the beginning and the last at the end.
    """
    compiled = [re.compile(expression(part), re.DOTALL) for part in parts]
    inner = [(one, part, ANY in part) for one, part in zip(compiled, parts, strict=True)][1:-1]

    def match(text: str) -> bool:
        if len(parts) == 1:
            return compiled[0].fullmatch(text) is not None
        first = compiled[0].match(text)
        if first is None:
            return False
        place, places = first.end(), None
        for one, part, wild in inner:
            if wild and (len(text) - place) * len(part) > MAX_SEARCH_STEPS:
                places = places or Places(text)
                place = places.end(part, place)
                if place < 0:
                    return False
                continue
            found = one.search(text, place)  # linear where nothing is wild: what was read is not read again
            if found is None:
                return False
            place = found.end()
        start = len(text) - len(parts[-1])
        return start >= place and compiled[-1].match(text, start) is not None

    return match


class Places:
    """Where each character stands in a text: a whole number whose bit i says whether it is the i-th."""

    __slots__ = ("_codes", "_known")

    def __init__(self, text: str) -> None:
        self._codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        self._known: dict[str, int] = {}

    def _of(self, sign: str) -> int:
        known = self._known.get(sign)
        if known is None:
            bits = np.packbits(self._codes == ord(sign), bitorder="little")
            known = self._known[sign] = int.from_bytes(bits.tobytes(), "little")
        return known

    def end(self, segment: tuple[str | None, ...], place: int) -> int:
        """The end of a segment's leftmost occurrence from a place on; -1 where there is none.

        Of the places where the segment fits, those that have its first character there, its second one further on,
        and so forth: for each character one operation on as many bits as the text has characters, whatever they are,
        where trying one place after the other may look at every character of the segment at each (T74, T100).
        """
        room = len(self._codes) - place - len(segment) + 1
        found = (1 << room) - 1 if room > 0 else 0
        for offset, sign in enumerate(segment):
            if found and sign is not ANY:
                found &= self._of(sign) >> (place + offset)
        return place + (found & -found).bit_length() - 1 + len(segment) if found else -1


def like(text: str, pattern: str, escape: str = "\\") -> bool:
    """Whether one text is of a pattern; for labels, which are public."""
    return matcher(segments(pattern, escape))(text)
