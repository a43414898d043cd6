"""What an answer says of row bounding: which rows it is about, and how many persons have more of them."""

from __future__ import annotations

from sulq.answers.released import Released
from sulq.language.facts import Facts, Heavy
from sulq.language.question import Above, Choose, Holistic, Question, Together
from sulq.language.relation import Relation, Table
from sulq.language.statistic import HeavyPersons


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


def heavy_share(table: str, released: Released) -> Heavy:
    """The share from the two noisy counts of persons, each within its interval at 97.5%: both hold at once at 95%."""
    (heavy, others), ends = released.values()[0], [end[0] for end in released.interval(0.025)]
    (least, fewest), (most, many) = ([max(float(n), 0.0) for n in end] for end in ends)
    whole = max(heavy, 0.0) + max(others, 0.0)
    low = least / (least + many) if least + many else 0.0
    high = most / (most + fewest) if most + fewest else 1.0
    return Heavy(table, min(max(max(heavy, 0.0) / whole if whole else 0.0, low), high), low, high)
