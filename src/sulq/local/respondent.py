"""The person's side of the local model: a record goes in, a randomised report comes out (SR19)."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np

from sulq.answers import wire
from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon
from sulq.local.diary import Diary, Told
from sulq.local.methods import AUTO, Reports, price, response
from sulq.local.record import MAX_CELLS, Record


class Respondent:
    """Randomises records where the people are; whoever collects the reports need not be trusted.

    Privacy: each report is epsilon-indistinguishable between any two records of the domain, exactly: its
    probabilities are rationals rounded towards privacy, and no float takes part in a draw [S4.19].
    Source: docs/theory/local.md.

    Args:
        domain: The values there may be: a list or number of values, a column such as sulq.Int(0, 9), or columns by
            name, of which a record has one value each.
        epsilon: What one report loses at most.
        method: "krr", "bitwise", "oue", "hadamard", or "auto", the one of least variance.
        diary: This person's budget and memory, which `report` needs; questions may share it.
    """

    def __init__(
        self, domain: object, *, epsilon: float | Epsilon, method: str = AUTO, diary: Diary | None = None
    ) -> None:
        self._record = Record.of(domain)
        self._epsilon = price(epsilon)
        self._method, self._response = response(self._record, self._epsilon, method)
        if diary is not None and not isinstance(diary, Diary):
            raise QuestionError("bad-parameter", "diary is a sulq.local.Diary.")
        self._diary = diary

    @property
    def epsilon(self) -> Epsilon:
        """What one report loses at most."""
        return Epsilon(self._epsilon)

    @property
    def method(self) -> str:
        """The method in use."""
        return self._method

    @property
    def diary(self) -> Diary | None:
        """This person's budget and memory."""
        return self._diary

    def randomise(self, values: object) -> Reports:
        """A fresh report for every value, or for one value alone; each is another person's, asked once.

        Nothing is remembered: a person who is asked again answers by `report`. Whole numbers for "krr", "bitwise" and
        "hadamard", rows of truth values for "oue". A value outside its bounds is clamped; one that is missing or
        not declared is answered by a random one, and never by an error. Lists and arrays hold a value each for many
        people: a value of which nothing is known, which may be a list itself, goes by `report` or as [value].

        Raises:
            QuestionError: `bad-table`: the fields are not those declared, or an array's type holds no declared value.
        """
        return self._reported(values, alone=False)

    def _reported(self, values: object, *, alone: bool) -> Reports:
        cells, single = self._record.read(values, alone=alone)
        reports = self._response.randomise(cells)
        return frozen(reports.reshape(self._response.shape) if single else reports)

    def pmf(self, value: object) -> dict[object, Fraction]:
        """Every report that a record with these declared values may give, and its exact probability.

        For auditing: `sulq.audit.exact_epsilon([respondent.pmf(value) for value in domain])` is the exact loss.

        Raises:
            QuestionError: `unknown-category`: no such record is declared; `too-large`: there are too many reports.
        """
        cell = self._record.cell(value)
        if self._response.outcomes > MAX_CELLS:
            raise QuestionError("too-large", "There are too many different reports to list them.")
        return dict(self._response.pmf(cell))

    def report(self, value: object, *, question: str, round: int | str = 1) -> Reports:  # noqa: A002
        """This person's report to a question of a round: drawn once, charged once, and repeated ever after.

        A question is known by its name: two that share a diary need two.

        Raises:
            BudgetExceeded: The diary does not hold another report; nothing was told.
            QuestionError: `key-reused`: the round and question were answered in another encoding; `bad-table`: the
                fields are not those declared.
        """
        diary = self._diary
        if diary is None:
            raise QuestionError(
                "bad-parameter",
                "A report is charged to a diary.",
                "Give one: Respondent(..., diary=Diary(Epsilon(2))).",
            )
        key, encoding = json.dumps([str(round), str(question)]), self._encoding()
        with diary:
            told = diary.find(key, encoding)
            if told is None:
                diary.afford(self._epsilon)
                told = _plain(self._reported(value, alone=True))
                diary.note(key, encoding, self._epsilon, told)
        return frozen(self._shaped(told))

    def _encoding(self) -> str:
        """What the report means, public facts alone."""
        return wire.digest((self._record.schema, str(self._epsilon), self._method))

    def _shaped(self, told: Told) -> Reports:
        if isinstance(told, int):
            return np.array(told, dtype=np.int64)
        found = np.zeros(self._response.shape, dtype=np.bool_)
        found[told] = True
        return found

    def __repr__(self) -> str:
        return f"Respondent({self._record.cells:,} values, {self.epsilon}, method {self._method!r})"


def frozen(reports: Reports) -> Reports:
    """Reports as they were drawn: never to be changed after."""
    reports.flags.writeable = False
    return reports


def _plain(report: Reports) -> Told:
    """A report as the diary keeps it: a whole number, or the places of the bits that are set."""
    return int(report) if report.ndim == 0 else [int(place) for place in np.flatnonzero(report)]
