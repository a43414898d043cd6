"""Released integers as answers: the shape, names and notes that a question asks for. Post-processing alone."""

from __future__ import annotations

from collections import Counter

from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.estimators import Chosen, FirstAbove, Placed, Plain
from sulq.answers.plan import Part, Plan
from sulq.answers.released import Released, heavy_share, kept_rows
from sulq.language.facts import Facts
from sulq.language.question import Single, Together
from sulq.language.rowfn import Col, RowFn
from sulq.language.statistic import HeavyPersons


def answer_of(plan: Plan, receipt: Receipt, released: tuple[Released, ...], facts: Facts) -> Answer | Answers:
    """Put released integers into the shape of the question; nothing here can fail for want of a file."""
    notes = (*facts.cautions, *(() if facts.durable else ("the ledger is in memory and forgotten at exit",)))
    questions = plan.question.questions if isinstance(plan.question, Together) else (plan.question,)
    answers = tuple(
        Answer(
            found, _reading(part), keys_of(part), names_of(part), plan.spend, facts.remaining, plan.unit,
            plan.guarantee, plan.event, receipt, receipt.stored is not None,
            (*_told(asked, part, found, facts), *notes), total=facts.spent, pairs=part.pairs,
        )
        for asked, part, found in zip(questions, plan.parts, released, strict=True)
    )  # fmt: skip
    return Answers(answers) if isinstance(plan.question, Together) else answers[0]


def _told(asked: Single, part: Part, released: Released, facts: Facts) -> tuple[str, ...]:
    """What of an answer rests on the owner's word (SR5), and which rows it is about."""
    rests = () if part.whole is None or not part.whole.declared else (f"rests on the {part.whole.declared}",)
    if part.whole is not None and isinstance(part.whole.statistic, HeavyPersons):
        return (str(heavy_share("", released)),)
    return (*kept_rows(asked, facts), *rests)


def _reading(part: Part) -> Plain | Chosen | FirstAbove | Placed:
    if part.whole is not None:
        return Plain() if part.whole.placed is None else Placed(part.whole.placed, part.whole.unit)
    if part.thresholds is not None:
        return FirstAbove(part.tally.blocks[0].step)
    return Plain() if part.score is None else Chosen()


def keys_of(part: Part) -> tuple[tuple[str, tuple[object, ...]], ...]:
    """Names and labels of a part's keys, names made different."""
    found: dict[str, tuple[object, ...]] = {}
    for key in part.by:
        name = base = _name(key.fn)
        while name in found:
            name = f"{base}_{len(found)}"
        found[name] = key.labels
    return tuple(found.items())


def names_of(part: Part) -> tuple[str, ...]:
    """Names of a part's columns."""
    if part.whole is not None:
        return part.names
    if part.score is not None:
        return ("choice",)
    if part.thresholds is not None:
        return ("first",)
    found = [] if part.people is None else ["people"]
    for block in part.tally.blocks:
        base = _name(block.fn)
        found += [base] if block.width == 1 else [f"{base}_{i}" for i in range(block.width)]
    often = Counter(found)
    return tuple(name if often[name] == 1 else f"{name}_{i}" for i, name in enumerate(found))


def _name(fn: RowFn) -> str:
    """A column's own name where a row function reads just one, else its kind."""
    if isinstance(fn, Col):
        return fn.name
    parts = fn.parts()
    return _name(parts[0]) if len(parts) == 1 else type(fn).__name__.lower()
