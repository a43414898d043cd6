"""A fixed workload asked once: its transcript answers the same questions for ever, without the database (S3.1)."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, islice
from typing import Any, ClassVar, Final, Literal, Self, cast

import pyarrow as pa

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers
from sulq.answers.call import timed
from sulq.answers.law_choice import LawName
from sulq.answers.oracle import LaidOutOracle, Oracle, Progress, ask_as_laid_out
from sulq.answers.released import Released, kept_rows
from sulq.answers.reuse import name_of, nothing, rearranged
from sulq.display.labels import label
from sulq.display.progress import shows_progress
from sulq.errors import QuestionError
from sulq.forms.parameters import checked
from sulq.language.facts import Facts, TableFacts
from sulq.language.privacy import Epsilon, EpsilonDelta, EpsilonKeys, Loss, Queries, Rho, SubLinear, Unit
from sulq.language.question import QUESTIONS, OpenSums, Question, Single, Together
from sulq.release.base import Chart, Paid, Release, unreadable
from sulq.sql.answer import SqlAnswer
from sulq.sql.compile import compile as compiled_of
from sulq.sql.division import amount
from sulq.sql.released.render import PreparedQuery, prepare
from sulq.sql.session import Sql

INTERVAL_LEVEL: Final = 0.95  # of the intervals

Found = SqlAnswer | Answer | Answers
MAX_QUESTIONS: Final = 4096  # questions of one transcript
LOSSES: Final = (Epsilon, EpsilonDelta, Queries, Rho)
NOTE: Final = "from a published transcript: nothing was asked of the data, nothing was charged"

Published = str | Question


def columns_of(found: Found) -> dict[str, list[object]]:
    """An answer as columns, with the ends of its intervals; of several together, one after the other."""
    if not isinstance(found, Answers):
        return found.to_dict(INTERVAL_LEVEL)
    several = [answer.to_dict(INTERVAL_LEVEL) for answer in found]
    return {f"{i + 1}. {name}": cells for i, one in enumerate(several) for name, cells in _padded(one, several)}


def _padded(one: dict[str, list[object]], several: list[dict[str, list[object]]]) -> list[tuple[str, list[object]]]:
    most = max(len(cells) for columns in several for cells in columns.values())
    return [(name, cells + [None] * (most - len(cells))) for name, cells in one.items()]


def plain(columns: Mapping[str, list[object]]) -> dict[str, pa.Array]:
    """Columns of one kind each that every file format holds: whole numbers, numbers, truths, else texts."""
    return {name: _plain(cells) for name, cells in columns.items()}


def _plain(cells: Sequence[Any]) -> pa.Array:
    given = [cell for cell in cells if cell is not None]
    kinds = {type(cell) for cell in given}
    if kinds == {bool} or (kinds == {int} and all(abs(cell) < 2**63 for cell in given)):
        return pa.array(cells, pa.bool_() if bool in kinds else pa.int64())
    if kinds and kinds <= {int, float}:
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    texts = (cell.isoformat() if isinstance(cell, datetime.date) else cell for cell in cells)
    return pa.array([None if text is None else str(text) for text in texts], pa.string())


def chart_of(title: str, columns: Mapping[str, list[object]]) -> Chart | None:
    """Bars of the first column with intervals, named by the columns before it."""
    for name, cells in columns.items():
        tail = "" if name == "value" else f"_{name}"
        low, high = columns.get(f"low{tail}"), columns.get(f"high{tail}")
        if low is None or high is None:
            continue
        before = list(columns)[: list(columns).index(name)]
        keys = [
            column for column in before if f"low_{column}" not in columns and not column.startswith(("low", "high"))
        ]
        rows = [
            (" / ".join(label(columns[key][i]) for key in keys) or name, float(value), float(a), float(b))
            for i, (value, a, b) in enumerate(zip(cells, low, high, strict=True))
            if isinstance(value, (int, float)) and isinstance(a, (int, float)) and isinstance(b, (int, float))
        ]
        rows = [row for row in rows if all(map(math.isfinite, row[1:]))]
        if rows:
            names, values, lows, highs = zip(*rows, strict=True)
            error = tuple(max(b - v, v - a) for v, a, b in zip(values, lows, highs, strict=True))
            return Chart(title, names, values, error, f"{name}, with {INTERVAL_LEVEL:.0%} intervals")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript(Release):
    """Questions and their noisy answers, published together; `transcript.answer(sql)` or `transcript[i]`.

    Privacy: what the one debit says; whatever is computed from a transcript costs nothing more (post-processing).
    Accuracy: of each answer what the database would have said of it at the same part of the spend.
    Source: S3.1, the non-interactive mechanism from the interactive one.
    """

    kind: ClassVar[str] = "publish"
    questions: tuple[Published, ...]
    answers: tuple[tuple[Answer, ...], ...]  # of each question; a query that asks nothing of the rows has none
    database: tuple[TableFacts, ...]  # the public tables the questions were read by, the first one the dataset's
    spend: Loss | None  # its kind decides how a query's statistics are asked

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Found]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> Found:
        """The answer to a question by its place, with its error bars."""
        question, answers = self.questions[index], self.answers[index]
        if not isinstance(question, str):
            noted = tuple(replace(answer, notes=(*answer.notes, NOTE)) for answer in answers)
            return Answers(noted) if isinstance(question, Together) else noted[0]
        return self._read(_prepared(question, self._facts, self.spend), [answer.released for answer in answers])

    def answer(self, question: Published) -> Found:
        """The answer to a published question, in these words or in others that ask the same of the data.

        Args:
            question: a SELECT, or a question of the language.

        Raises:
            QuestionError: `not-published`: the transcript does not hold it.
        """
        if not isinstance(question, (str, *QUESTIONS)):
            raise QuestionError("bad-question", "A transcript is asked SQL, or a question of the language.")
        text = _key(question)
        for i, held in enumerate(self.questions):
            if isinstance(held, str) is isinstance(question, str) and _key(held) == text:
                return self[i]
        if not isinstance(question, str):
            raise _unpublished()
        asked = _prepared(question, self._facts, self.spend)
        known = self._known()
        found: list[Released] = []
        for one in _singles(asked.question):
            if name_of(one) not in known:
                raise _unpublished()
            stored, released = known[name_of(one)]
            found += rearranged([released], stored, one)
        return self._read(asked, found)

    @property
    def _facts(self) -> Facts:
        return _read_by(self.database, self.paid.unit, self.spend)

    def _known(self) -> dict[str, tuple[Single, Released]]:
        """Every set of sums that was released, by the digest that the same ones share."""
        known: dict[str, tuple[Single, Released]] = {}
        facts = self._facts
        for question, answers in zip(self.questions, self.answers, strict=True):
            asked = _question(question, facts, self.spend)
            for one, answer in zip(_singles(asked), answers, strict=True):
                known.setdefault(name_of(one), (one, answer.released))
        return known

    def _read(self, asked: PreparedQuery, released: Sequence[Released]) -> SqlAnswer:
        table = asked.read(released)
        paid = self.paid
        about = () if asked.question is None else kept_rows(asked.question, self._facts)
        one = next((answer for answers in self.answers for answer in answers), None)
        answers = None if one is None or not released else tuple(replace(one, released=found) for found in released)
        return SqlAnswer(
            table, None if answers is None else Answers(answers), paid.spent, None, paid.unit, paid.guarantee,
            paid.receipts[0] if paid.receipts else None, notes=(*table.notes, *about, NOTE),
        )  # fmt: skip

    def title(self) -> str:
        """One line for people."""
        return f"Answers to {len(self)} questions about {self.database[0].schema.table}"

    def tables(self) -> dict[str, pa.Table]:
        """The answer to each question as a table with the ends of its intervals, for readers."""
        return {f"answer-{i + 1}": pa.table(plain(columns_of(found))) for i, found in enumerate(self)}

    def facts(self) -> dict[str, object]:
        """Questions, answers and the tables they are of; of the budget they were paid from nothing."""
        return {
            "questions": [one if isinstance(one, str) else wire.to_json(one) for one in self.questions],
            "answers": wire.to_json(Answers(tuple(chain.from_iterable(self.answers)))),  # as one: they have one event
            "each": [len(answers) for answers in self.answers],
            "database": wire.to_json(self.database),
            "spend": wire.to_json(self.spend),
        }

    @classmethod
    def of(cls, paid: Paid, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Self:
        """The transcript that was saved; its tables say nothing that the answers do not."""
        del tables
        database, spend = wire.from_json(facts["database"]), wire.from_json(facts["spend"])
        questions = tuple(one if isinstance(one, str) else wire.from_json(one) for one in facts["questions"])
        answers, each = wire.from_json(facts["answers"]), [int(number) for number in facts["each"]]
        if (
            not isinstance(database, tuple)
            or not database
            or not all(isinstance(one, TableFacts) for one in database)
            or not (spend is None or isinstance(spend, LOSSES))
            or not all(isinstance(one, (str, *QUESTIONS)) for one in questions)
            or not isinstance(answers, Answers)
            or (len(each), sum(each)) != (len(questions), len(answers))
        ):
            raise unreadable()
        left = iter(answers)
        found = cls(
            paid=paid,
            questions=cast("tuple[Published, ...]", questions),
            answers=tuple(tuple(islice(left, number)) for number in each),
            database=cast("tuple[TableFacts, ...]", database),
            spend=spend,
        )
        found._known()
        return found

    def charts(self) -> list[Chart]:
        """The first column of each answer that has error bars."""
        made = [
            chart_of(_said(question), columns_of(found)) for question, found in zip(self.questions, self, strict=True)
        ]
        return [chart for chart in made if chart is not None]

    def __repr__(self) -> str:
        said = [_said(question) for question in self.questions]
        return "\n".join([f"{self.title()}; {self.paid}", *(f"{i}: {text}" for i, text in enumerate(said))])


@shows_progress
@timed
def publish(
    db: Oracle,
    questions: list[str],
    *,
    division: Literal["planned", "even"] = "planned",
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> Transcript:
    """Ask a fixed workload once, at one debit, and keep the answers as an object without the database.

    Privacy: one `Together`, so the ledger shows one debit of the spend, all or nothing (S3.1, S2.6).
    Accuracy: each question has the noise it would have if it were asked alone at its part of the spend.
    Source: S3.1.

    Args:
        db: the database, or a far curator.
        questions: SELECT statements; from Python also questions of the language (Sums, Choose, Together, ...).
        division: how the spend is divided: so that the mean relative error is least (where all is SQL), or evenly.
        spend: what the whole workload costs; its kind chooses the noise.
        progress: called with how many asks are done, and how many there are.
        timeout: for how many seconds it may go on; what was charged by then stays charged.

    Raises:
        QuestionError: `bad-parameter`, or what is wrong with a question; nothing is spent.
    """
    return weighed_publication(db, questions, division=division, spend=spend, progress=progress)


def weighed_publication(
    db: Oracle,
    questions: Sequence[Published],
    *,
    division: Literal["planned", "even"] = "planned",
    weights: Sequence[float] | None = None,
    spend: Loss | None = None,
    progress: Progress | None = None,
) -> Transcript:
    """What `publish` does, where some questions may count more than others; `weights`: how much each counts."""
    given: list[object] = list(questions) if isinstance(questions, (list, tuple)) else []
    checked(0 < len(given) <= MAX_QUESTIONS, f"questions is a list of 1 to {MAX_QUESTIONS} SELECT statements.")
    checked(all(isinstance(one, (str, *QUESTIONS)) for one in given), "Each question is SQL, or of the language.")
    checked(division in ("planned", "even"), "division is 'planned' or 'even'.")
    asked = cast("list[Published]", given)
    facts = db.facts
    if spend is None and not isinstance(facts.budget, SubLinear):
        raise QuestionError("spend-missing", "This has a price.", "Name it: spend=Epsilon(1).")
    database = facts.catalogue.tables
    public = _read_by(database, facts.unit, spend)  # so that a question is read here as it will be later
    parts = [_question(one, public, spend) for one in asked]
    counted = [] if weights is None else [Fraction(weight) for weight in weights]
    planned = _planned(db, asked, parts, spend, weights) if division == "planned" else []
    whole = _together(parts, planned or counted)
    tell = progress or (lambda _done, _planned: None)
    tell(0, 1)
    answered = cast("Answers", ask_as_laid_out(db, whole, spend))
    tell(1, 1)
    # The ledger's own code of a receipt stays with the ledger, and what else was spent or is left with the asker.
    receipt = replace(answered.receipt, mac="", stored=None)
    left = iter([_public(replace(answer, receipt=receipt), facts) for answer in answered])
    answers = tuple(tuple(next(left) for _ in _singles(part)) for part in parts)
    paid = Paid(answered.spent, facts.unit, answered[0].guarantee, (receipt,))
    return Transcript(paid=paid, questions=tuple(asked), answers=answers, database=database, spend=spend)


def _public(answer: Answer, facts: Facts) -> Answer:
    """An answer without what is said of the budget it was paid from."""
    notes = tuple(note for note in answer.notes if note not in facts.cautions)
    return replace(answer, remaining=None, total=None, notes=notes)


def _read_by(tables: tuple[TableFacts, ...], unit: Unit, spend: Loss | None) -> Facts:
    """The facts that SQL is read by: tables and unit. Of a budget only the kind matters, which the spend's tells.

    A transcript is for everybody, and what its asker had, spent or has left is nobody's: the budget here is
    one that held this spend alone; under a SubLinear one, which says how all its sums are asked, any.
    """
    schema = tables[0].schema
    if spend is None or isinstance(spend, Queries):
        any_one = SubLinear(epsilon=1, delta=Fraction(1, 2), queries=1)
        return Facts(schema, unit, any_one, Queries(1), Queries(0), tables=tables)
    budget = EpsilonDelta(spend.epsilon, spend.delta) if isinstance(spend, EpsilonKeys) else spend
    return Facts(schema, unit, budget, spend, nothing(spend), tables=tables)


def _prepared(text: str, facts: Facts, spend: Loss | None) -> PreparedQuery:
    compiled = compiled_of(text, facts)
    if compiled.explain:
        raise QuestionError("bad-parameter", "An explanation is free: it is not published.")
    return prepare(compiled.program, facts, spend)


def _question(one: Published, facts: Facts, spend: Loss | None) -> Question | None:
    return _prepared(one, facts, spend).question if isinstance(one, str) else one


def _singles(question: Question | None) -> tuple[Single, ...]:
    if question is None:
        return ()
    return question.questions if isinstance(question, Together) else (question,)


def _planned(
    db: Oracle,
    asked: Sequence[Published],
    parts: Sequence[Question | None],
    spend: Loss | None,
    weights: Sequence[float] | None,
) -> list[Fraction]:
    """What part of the spend each query gets; nothing, for even parts, where a plan says nothing.

    A plan is of SQL that asks for sums over declared keys: groups found in the data take part of a delta besides.
    """
    texts = [one for one in asked if isinstance(one, str)]
    found = any(isinstance(one, OpenSums) for part in parts for one in _singles(part))
    if (
        len(texts) < max(len(asked), 2)
        or found
        or None in parts
        or isinstance(spend, (type(None), Queries, EpsilonKeys))
    ):
        return []
    law: LawName | None = "gaussian" if isinstance(spend, EpsilonDelta) else None
    spends = Sql(LaidOutOracle(db)).plan(texts, spend=spend, weights=weights, law=law).spends
    return [Fraction(amount(one)) for one in spends if not isinstance(one, (Queries, EpsilonKeys))]


def _together(parts: Sequence[Question | None], weights: Sequence[Fraction]) -> Together:
    """All questions as one; a question's own shares divide its part, which is the same for each without weights."""
    questions: list[Single] = []
    shares: list[Fraction] = []
    for part, weight in zip(parts, weights or [Fraction(1)] * len(parts), strict=True):
        singles = _singles(part)
        own = part.shares if isinstance(part, Together) and part.shares else (Fraction(1),) * len(singles)
        questions += singles
        shares += [weight * share / sum(own) for share in own]
    checked(bool(questions), "Nothing here is asked of the data.")
    most = max(shares)
    return Together(tuple(questions), tuple(share / most for share in shares))


def _unpublished() -> QuestionError:
    return QuestionError("not-published", "The transcript does not hold this question.")


def _key(question: Published) -> str:
    """A text that the same question has: of SQL its own."""
    return question.strip() if isinstance(question, str) else wire.encode(question)


def _said(question: Published) -> str:
    return " ".join(question.split()) if isinstance(question, str) else type(question).__name__
