"""A refusal that knows the place in the text; it leaves `sql/` as a QuestionError with line and column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from sulq.errors import QuestionError


class SqlRefused(Exception):
    """What is refused, why, and where in the text."""

    def __init__(self, code: str, message: str, at: int, remedy: str = "") -> None:
        super().__init__(code, message, at, remedy)
        self.code, self.message, self.at, self.remedy = code, message, at, remedy

    def located(self, text: str) -> QuestionError:
        """The refusal as the analyst reads it."""
        line = text.count("\n", 0, self.at) + 1
        column = self.at - (text.rfind("\n", 0, self.at) + 1) + 1
        return QuestionError(self.code, f"{self.message.rstrip('.')}, at line {line}, column {column}.", self.remedy)


def unsupported(what: str, at: int, remedy: str = "") -> NoReturn:
    """Refuse a construct of SQL by its name."""
    raise SqlRefused("sql-unsupported", f"{what} is not answered here", at, remedy)


@contextmanager
def placed(at: int) -> Iterator[None]:
    """Tell the place in the text of what is refused inside."""
    try:
        yield
    except QuestionError as error:
        raise SqlRefused(error.code, error.message, at, error.remedy) from None
