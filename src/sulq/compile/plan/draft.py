"""A plan in the making, and its first two steps: names to columns (`bind`), then kinds to integer blocks (`bound`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError
from sulq.kernel.scores import candidates
from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.language.kinds import HUGE, Code, Grid, Words
from sulq.language.law import Law, Passed
from sulq.language.privacy import Draw, Loss
from sulq.language.question import OpenSums, Sums
from sulq.language.relation import Relation, Table, steps
from sulq.language.rowfn import Bucket, Each, Position, RowFn
from sulq.language.rowfn.base import condition, walk
from sulq.language.rowfn.vectors import MAX_BITS, bounded, reach, scalar_grid
from sulq.language.score import Score, form
from sulq.language.shape import Shape, shape
from sulq.language.tally import Block, Key


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one person moves a block's sums, in grid units, in one of the ways the relation allows."""

    l1: Fraction
    l2_squared: Fraction
    most: Fraction = Fraction(0)  # of a stream of sums: the largest move of one of them
    span: Fraction = Fraction(0)  # likewise: the largest rise plus the largest fall


@dataclass(frozen=True, slots=True, eq=False)
class PlanDraft:
    """One question on its way through the steps."""

    question: Sums | OpenSums  # of a choice or a threshold, its counts
    facts: Facts
    spend: Loss  # this question's part of the price
    score: Score | None = None  # of a choice
    exponential: bool = False  # of a choice: by the exponential mechanism, whatever is paid
    levels: tuple[Fraction, ...] | None = None  # of a threshold
    key_delta: Fraction = Fraction(0)  # of open keys: the chance that a person alone in a group shows
    shape: Shape | None = None  # bind: what the sums run over
    keys: tuple[Key, ...] = ()  # bind
    droppable: bool = True  # bind: whether a row can fall outside the sums
    cells: int = 1  # bind; 0 where keys are open
    blocks: tuple[Block, ...] = ()  # bound
    thresholds: tuple[int, ...] | None = None  # bound: the levels in units of the one block
    ways: tuple[str, ...] = ()  # contribution: "single", "pair", "apart"; of open keys "gathered", "spread"
    rows: int = 1  # contribution
    reaches: tuple[dict[str, Reach], ...] = ()  # sensitivity: for each block, by way
    coordinates: tuple[int, ...] = ()  # sensitivity: the largest move of one coordinate of each block
    laws: tuple[Law, ...] = ()  # calibrate
    refine: tuple[int, ...] = ()  # calibrate
    norm: str = "l1"  # calibrate
    draws: tuple[Draw, ...] = field(default=())  # calibrate
    people: Passed | None = None  # calibrate, of open keys

    @property
    def answered(self) -> int:
        """Cells that are answered: for a choice those of all keys but the last, which it chooses by."""
        return self.cells if self.score is None else self.cells // len(self.keys[-1].labels)

    @property
    def schema(self) -> Schema:
        """The columns the question's row functions speak of."""
        return self.facts.schema if self.shape is None else self.shape.schema


MAX_CELLS: Final = 2**22


def bind(draft: PlanDraft) -> PlanDraft:
    """Resolve the table, the condition and the keys; check what the relation forbids."""
    question, facts = draft.question, draft.facts
    over = shape(question.over, facts)
    for fn in walk(*question.parts()):
        allowed(fn, question.over, facts)
    for relation, fns in steps(question.over):
        for fn in walk(*fns):
            allowed(fn, relation, facts)
    droppable = not over.fixed
    if question.where is not None:
        condition(question.where, over.schema)
        droppable = True
    if isinstance(question, OpenSums):
        return replace(draft, shape=over, keys=_open(question, over), droppable=True, cells=0)
    keys = []
    for fn in question.by:
        kind = fn.kind(over.schema)
        if isinstance(kind, Words):
            raise QuestionError("open-keys", "Free text as a key has no labels known in advance.")
        fitted: RowFn = fn
        if not isinstance(kind, Code):
            fitted = Each(fn)
            kind = fitted.kind(over.schema)
        keys.append(Key(fitted, kind.labels))
        droppable = droppable or kind.nullable
    cells = math.prod(len(key.labels) for key in keys)
    if cells > MAX_CELLS:
        raise QuestionError("too-large", f"The partition has {cells} cells; at most {MAX_CELLS} can be asked.")
    return replace(draft, shape=over, keys=tuple(keys), droppable=droppable, cells=cells)


def _open(question: OpenSums, over: Shape) -> tuple[Key, ...]:
    """Keys without labels. Whose a row is must be known: the threshold counts people, not rows (SR14)."""
    if not over.owned and over.rows > 1:
        raise QuestionError("person-lost", "Groups that are found in the data need rows that are one person's each.")
    for fn in question.by:
        if isinstance(fn.kind(over.schema), Grid):
            raise QuestionError("wrong-kind", "A vector cannot be a key.")
    return tuple(Key(fn, ()) for fn in question.by)


BELOW: Final = "Divide the people in the tables that it is made of: db.split()."


def allowed(fn: RowFn, over: Relation, facts: Facts) -> None:
    """Refuse what would tell the rows of `over` apart by their place where a neighbour shifts places (S0.7, SR11)."""
    unit = facts.unit
    if isinstance(fn, (Position, Bucket)) and not isinstance(over, Table):
        raise QuestionError("needs-position", "A derived table has no places and no buckets.", BELOW)
    if isinstance(fn, (Position, Bucket)) and isinstance(over, Table) and facts.table_of(over.name).public:
        raise QuestionError("needs-position", "A public table has no people to be bucketed.")
    if isinstance(fn, Position) and not unit.positions_are_public:
        raise QuestionError("needs-position", "A row's place means nothing under this relation.")
    if isinstance(fn, Bucket) and unit.column is None and not unit.positions_are_public:
        raise QuestionError("needs-position", "Rows without a person column have nothing to be bucketed by.")


MAX_SUMS = 2**24
MAX_THRESHOLD_UNITS = 2**60  # a threshold, in units: sums are clamped beyond it, so that none changes sides (T5)
MAX_TERM_UNITS = 2 ** (2 * MAX_BITS)  # the largest term of a sum: a product of two coordinates (SR17)


def bound(draft: PlanDraft) -> PlanDraft:
    """Fix the grid of each value from public facts, the same on every engine (SR17)."""
    blocks = tuple(_block(fn, draft.schema) for fn in draft.question.values)
    if draft.cells * sum(block.width for block in blocks) > MAX_SUMS:
        raise QuestionError("too-large", f"The answer would hold more than {MAX_SUMS} numbers.")
    if draft.score is not None:
        options = candidates(form(draft.score), blocks, draft.cells // draft.answered, draft.answered)
        if draft.answered * options > MAX_SUMS:
            raise QuestionError("too-large", f"The choices would have more than {MAX_SUMS} candidates.")
    thresholds = None if draft.levels is None else _thresholds(draft.levels, blocks[0], draft.cells)
    return replace(draft, blocks=blocks, thresholds=thresholds)


def _thresholds(levels: tuple[Fraction, ...], block: Block, cells: int) -> tuple[int, ...]:
    """Thresholds in whole units: a sum of units reaches a level exactly if it reaches the next unit above it."""
    sums = cells * block.width
    if len(levels) not in (1, sums):
        raise QuestionError("bad-question", f"There are {len(levels)} thresholds for {sums} sums.")
    units = tuple(math.ceil(level / block.step) for level in levels)
    if max(map(abs, units)) > MAX_THRESHOLD_UNITS:
        raise QuestionError("too-large", "A threshold is farther out than any sum can be.")
    return units


def _block(fn: RowFn, schema: Schema) -> Block:
    kind = fn.kind(schema)
    if isinstance(kind, Grid):
        if reach(kind) > MAX_TERM_UNITS or reach(kind) * kind.step > HUGE:
            raise QuestionError("too-large", "A coordinate has too many units, or is too large, to be summed.")
        return Block(fn, kind.step, kind.low, kind.high, vector=True)
    lo, hi, number = bounded(fn, schema)
    step, low, high = scalar_grid(lo, hi, number.step)
    return Block(fn, step, (low,), (high,), vector=False)
