"""What an answer says of row bounding: which rows it is about, and how many persons have more of them."""

from __future__ import annotations

from sulq.terms.facts import Facts
from sulq.terms.question import Above, Choose, Holistic, Question, Together
from sulq.terms.relation import Relation, Table
from sulq.terms.statistic import HeavyPersons


def kept_rows(question: Question, facts: Facts) -> tuple[str, ...]:
    """A note for every answer over a table of which so many rows a person are kept; none where all rows are."""
    asked = question.questions if isinstance(question, Together) else (question,)
    names: dict[str, None] = {}
    for item in asked:
        if not (isinstance(item, Holistic) and isinstance(item.statistic, HeavyPersons)):
            over = item.counts.over if isinstance(item, (Choose, Above)) else item.over
            names |= dict.fromkeys(_tables(over, facts))
    bounded = [name for name in names if facts.kept_of(facts.table_of(name)) is not None]
    if not bounded:
        return ()
    note = f"of the kept rows (at most {'one' if facts.unit.rows == 1 else facts.unit.rows} a person)"
    beside = [f"{item}{f' of {item.table}' if facts.tables else ''}" for item in facts.heavy if item.table in bounded]
    return ("; ".join([note, *beside]),)


def _tables(relation: Relation, facts: Facts) -> list[str]:
    """The tables a relation reads."""
    if isinstance(relation, Table):
        return [facts.table_of(relation.name).schema.table]
    return [name for source in relation.sources() for name in _tables(source, facts)]
