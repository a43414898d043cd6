"""Questions and their plans, side by side: pairs of lines in tests/plans/*.txt, readable by whoever knows neither.

A file opens with the public facts: the table, who is protected, the budget. Then
`?` asks and `=` is the plan, or the code of a refusal. Several values of one
question are divided by semicolons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq.api.named_asks import NamedAsks
from sulq.errors import QuestionError
from sulq.language import rowfn
from sulq.language.domain import Bool, Category, Int, Real, Schema
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Queries, Rho, SubLinear, Unit
from sulq.language.question import Sums
from tests.stub import Stub, facts

FILES = sorted(Path(__file__).parent.glob("*.txt"))
ASK = re.compile(
    r"(?P<ask>count|sums|sum|mean|variance|std|covariance|histogram)"
    r"(?: of (?P<value>.+?))?(?: in bins (?P<bins>.+?))?(?: where (?P<where>.+?))?(?: by (?P<by>.+?))?"
    r" (?:spending (?P<spend>.+)|for nothing)"
)
FUNCTIONS = (
    "bins",
    "bucket",
    "case",
    "dot",
    "each",
    "lit",
    "lookup",
    "nearest",
    "outer",
    "vector",
    "within_ball",
    "within_l1",
)


def table(text: str) -> Schema:
    """`age 0..120 | part 0.0..1.0 | city Lod/Yafo | smoker yes/no`."""
    columns: dict[str, object] = {}
    for item in text.split("|"):
        name, domain = item.split()
        if ".." in domain:
            low, high = domain.split("..")
            columns[name] = Real(float(low), float(high)) if "." in low else Int(int(low), int(high))
        else:
            columns[name] = Bool() if domain == "yes/no" else Category(domain.split("/"))
    return Schema.of("t", columns)


def unit(text: str) -> Unit:
    """`one row, add_remove` or `a person, up to 5 rows, replace_one`."""
    *who, neighbors = text.split(", ")
    return Unit(neighbors=neighbors) if who == ["one row"] else Unit("who", int(who[1].split()[2]), neighbors)


def loss(text: str) -> Loss:
    """`epsilon 0.1`, `rho 0.01`, `epsilon 1 and delta 1e-6`, `5 queries`."""
    words = text.split()
    if words[-1] == "queries":
        return Queries(int(words[0]))
    if len(words) == 5:
        return EpsilonDelta(float(words[1]), float(words[4]))
    return {"epsilon": Epsilon, "rho": Rho}[words[0]](float(words[1]))


def opened(text: str) -> Facts:
    """The public facts at the head of a file."""
    given = dict(line.split(": ", 1) for line in text.splitlines() if re.match(r"(table|unit|budget|size): ", line))
    many = re.fullmatch(r"(\d+) queries at epsilon (\S+) and delta (\S+)", given["budget"])
    budget = SubLinear(float(many[2]), float(many[3]), int(many[1])) if many else loss(given["budget"])
    return facts(table(given["table"]), unit(given["unit"]), budget, int(given["size"]) if "size" in given else None)


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """Each question with the lines that follow it."""
    for part in re.split(r"^\? ", text, flags=re.MULTILINE)[1:]:
        question, *lines = part.splitlines()
        yield question, "\n".join(line[2:] for line in lines if line.startswith("= "))


def planned(question: str, told: Facts) -> str:
    """What the plan says of a question, or the code it is refused with."""
    found = ASK.fullmatch(question)
    assert found, f"cannot read: {question}"
    names = {name: rowfn.col(name) for name in told.schema.names} | {name: getattr(rowfn, name) for name in FUNCTIONS}

    def read(text: str | None) -> list[object]:
        return [] if text is None else [eval(part, {"__builtins__": {}}, names) for part in text.split(";")]

    stub = Stub(told.schema, [])
    stub._facts = told
    db = NamedAsks(stub)
    try:
        values, by = read(found["value"]), read(found["by"])
        where = read(found["where"])[0] if found["where"] else None
        spend = loss(found["spend"]) if found["spend"] else None
        if found["ask"] == "sums":
            db.ask(Sums(tuple(rowfn.named(value) for value in values), where, tuple(by)), spend=spend)
        elif found["ask"] == "count":
            db.count(where, by=by, spend=spend)
        elif found["ask"] == "histogram":
            db.histogram(values[0], read(found["bins"].replace(",", ";")) if found["bins"] else None, spend=spend)
        elif found["ask"] == "covariance":
            db.covariance(values, where=where, by=by, spend=spend)
        else:
            getattr(db, found["ask"])(values[0], where=where, by=by, spend=spend)
    except QuestionError as refusal:
        return f"refused: {refusal.code}"
    plan = db.foresee(stub.asked[-1][0], spend=spend)
    lines = [line for part in plan.parts for line in part.lines()]
    return "\n".join([str(plan).splitlines()[0], *lines])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_question_has_the_plan_written_under_it(path):
    """The plan's text, sensitivities and widths are those a reader can check by hand (STYLE 9)."""
    text = path.read_text(encoding="utf-8")
    told = opened(text)
    found = list(pairs(text))
    assert len(found) >= 4
    for question, expected in found:
        assert planned(question, told) == expected, question


def test_a_wrong_plan_is_found():
    """Control: a line that says something else is noticed, and so is a question nobody can read."""
    told = facts(table("x 0..1"))
    assert planned("count spending epsilon 1", told) != planned("count spending epsilon 2", told)
    with pytest.raises(AssertionError):
        planned("give me everything", told)
