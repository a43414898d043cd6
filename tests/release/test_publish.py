"""Publishing: one debit, a transcript that needs no database, and the noise the database itself would have drawn."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sulq
from sulq import Choose, Epsilon, EpsilonDelta, Int, Queries, Rank, Rho, SubLinear, Sums, Text, Together, Unit, col
from sulq.language.rowfn import Each, Lit
from sulq.release import Transcript, load, publish
from sulq.release.base import ReleaseFiles
from tests.learn.cases import COLUMNS, exact, opened, refused

rng = np.random.default_rng(3)
ROWS = 400
DATA = {
    "age": rng.integers(0, 101, ROWS),
    "income": rng.uniform(0, 1000, ROWS).round(2),
    "city": rng.choice(["Haifa", "Lod", "Yafo"], ROWS),
    "smoker": rng.random(ROWS) < 0.3,
    "visit": np.array(["2020-01-01", "2020-07-01"], dtype="datetime64[D]")[rng.integers(0, 2, ROWS)],
    "name": rng.choice(["ann", "bea"], ROWS),
}
BY_CITY = "SELECT city, COUNT(*) AS people, AVG(income) AS income FROM data GROUP BY city ORDER BY city"
SMOKERS = "SELECT COUNT(*) FROM data WHERE smoker"
LAST = "SELECT MAX(visit) AS last, MEDIAN(age) AS middle FROM data"
HALF = Choose(Sums((Lit(1),), None, (Each(col("smoker")),)), Rank(1, 2))
COUNTS = Sums((Lit(1), col("age")), None, (col("city"),), (Fraction(1), Fraction(3)))
UNITS = np.array([[10**6]])
WORKLOAD = [BY_CITY, SMOKERS, LAST, COUNTS, Together((HALF, COUNTS)), HALF]


def test_means_are_published_for_an_epsilon_and_a_delta_0045() -> None:
    """Their sums are laid out for Gaussian noise, and planned so: a plan in the other law could not read them."""
    db = opened(COLUMNS, DATA, EpsilonDelta(5, 1e-5))
    made = publish(db, [BY_CITY, "SELECT AVG(age) FROM data"], spend=EpsilonDelta(1, 1e-6))
    assert {draw.mechanism for draw in db.transcript()[-1]["event"].draws} == {"gaussian"}
    assert 0 <= made[1].value <= 100


def test_a_workload_is_one_debit_and_answers_without_the_database_S3_1(tmp_path: Path) -> None:
    """Saved in either format and loaded where there is no data, every answer and error bar is the same (S3.1)."""
    db = opened(COLUMNS, DATA, Epsilon(3))
    before = len(db.transcript())
    made = publish(db, WORKLOAD, spend=Epsilon(2))
    assert len(db.transcript()) == before + 1
    assert made.paid.spent == Epsilon(2) == db.spent
    assert [receipt.seq for receipt in made.paid.receipts] == [db.transcript()[-1]["seq"]]
    said = [repr(found) for found in made]
    rows = weakref.ref(db)
    db.close()
    del db
    gc.collect()
    assert rows() is None  # nothing in the transcript leads back to the database
    for written in ("parquet", "csv"):
        made.save(tmp_path / written, written)
        again = load(tmp_path / written)
        assert isinstance(again, Transcript)
        assert [repr(found) for found in again] == said
        assert again.answer(BY_CITY).to_dict() == made[0].to_dict()
        assert again.answer(COUNTS).interval(0.9)[0].keys() == {"Haifa", "Lod", "Yafo"}
        assert again[0].accuracy(0.01)[0][1] > again[0].accuracy(0.2)[0][1]
        assert again.paid.spent == Epsilon(2)
    page = (tmp_path / "csv" / "index.html").read_text(encoding="utf-8")
    assert "AVG(income)" in page
    assert "<rect" in page
    assert "answer-1.csv" in {path.name for path in (tmp_path / "csv").iterdir()}


def test_the_noise_is_what_the_database_would_draw_at_the_same_part_S3_1() -> None:
    """Every law is that of the question asked alone at its part; on the noise-free oracle the answers are the truth."""
    db = opened(COLUMNS, DATA, Epsilon(9))
    workload = [BY_CITY, SMOKERS, LAST]
    plan = db.plan(workload, spend=Epsilon(1))
    made = publish(db, workload, spend=Epsilon(1))
    for i, (text, part) in enumerate(plan):
        alone = db.sql(text, spend=part, fresh=True)
        for ours, theirs in zip(made.answers[i], alone.answers, strict=True):
            for a, b in zip(ours.released.noise, theirs.released.noise, strict=True):
                assert (a.step, a.width, type(a.law)) == (b.step, b.width, type(b.law))
                assert float(a.law.scale) == pytest.approx(float(b.law.scale), rel=1e-6)
    truth = exact(db)
    told = publish(truth, WORKLOAD, spend=Epsilon(1))
    assert told.answer(BY_CITY).value == truth.sql(BY_CITY, spend=Epsilon(1)).value
    assert told[3].value["Lod"][1] == DATA["age"][DATA["city"] == "Lod"].sum()
    assert told.answer(SMOKERS).value == DATA["smoker"].sum()


def test_an_even_division_and_one_that_is_planned() -> None:
    """Planned: the worst relative error is smaller. Even: each question has the same part."""
    db = opened(COLUMNS, DATA, Epsilon(9))
    workload = [SMOKERS, BY_CITY]
    even = publish(db, workload, division="even", spend=Epsilon(1))
    assert even.answers[0][0].released.noise[0].law.scale == 2
    planned = publish(db, workload, spend=Epsilon(1))
    assert planned.answers[0][0].released.noise[0].law.scale > 2  # one count needs less than means of groups


def test_other_words_for_a_published_question_are_answered() -> None:
    """What asks the same sums is answered from them, in any order; what asks others is not published."""
    made = publish(opened(COLUMNS, DATA), WORKLOAD, spend=Epsilon(1))
    first = made.answer(BY_CITY)
    turned = made.answer("select avg(income) a, city from data group by 2 having count(*) > -1000 order by city")
    assert [row[0] for row in turned.value] == [row[2] for row in first.value]
    more = made.answer("SELECT COUNT(*) + 1 AS more FROM data WHERE smoker")
    assert more.value == made.answer(SMOKERS).value + 1
    for other in ("SELECT COUNT(*) FROM data", Sums((Lit(1),)), "SELECT COUNT(*) FROM data WHERE NOT smoker"):
        refused("not-published", made.answer, other)
    refused("unknown-column", made.answer, "SELECT SUM(height) FROM data")
    refused("bad-question", made.answer, 7)


@pytest.mark.parametrize(
    ("budget", "spend", "spent"),
    [
        (Rho(1), Rho(0.5), Rho(0.5)),
        (EpsilonDelta(9, 1e-6), EpsilonDelta(1, 1e-7), EpsilonDelta(1, 1e-7)),
        (SubLinear(epsilon=1, delta=1e-6, queries=100), None, Queries(13)),
    ],
    ids=str,
)
def test_every_kind_of_spend(budget: object, spend: object, spent: object, tmp_path: Path) -> None:
    """Gaussian noise, and the SuLQ policy's; names nobody listed where there is a delta for them."""
    db = opened(COLUMNS, DATA, budget)
    workload = [SMOKERS, "SELECT city, COUNT(*), SUM(age) FROM data GROUP BY city"]
    if isinstance(budget, EpsilonDelta):
        workload.append("SELECT name, COUNT(*) FROM data GROUP BY name")
    made = publish(db, workload, spend=spend)
    assert type(made.paid.spent) is type(spent)
    if not isinstance(spent, Queries):
        assert made.paid.spent == spent
    made.save(tmp_path)
    assert [repr(found) for found in load(tmp_path)] == [repr(found) for found in made]
    if isinstance(budget, EpsilonDelta):
        assert {row[0] for row in made[2].value} == {"ann", "bea"}


def test_empty_data_is_published_like_any_other(tmp_path: Path) -> None:
    """No rows: the same questions, the same charge, the same shape (SR6)."""
    none = {name: np.asarray(cells)[:0] for name, cells in DATA.items()}
    made = publish(opened(COLUMNS, none), [BY_CITY, LAST], spend=Epsilon(1))
    assert len(made[0].value) == 4  # three cities, and rows without one
    made.save(tmp_path)
    assert len(load(tmp_path)) == 2


def test_bad_input_is_refused_and_nothing_is_spent() -> None:
    """Before anything is asked; a spend that does not fit buys nothing at all."""
    db = opened(COLUMNS, DATA, Epsilon(1))
    for code, questions, options in (
        ("bad-parameter", [], {}),
        ("bad-parameter", SMOKERS, {}),
        ("bad-parameter", [SMOKERS, 3], {}),
        ("bad-parameter", [SMOKERS] * 4097, {}),
        ("sql-unsupported", ["SELECT 1 AS one"], {}),
        ("bad-parameter", [f"EXPLAIN {SMOKERS}"], {}),
        ("bad-parameter", [SMOKERS], {"division": "best"}),
        ("spend-missing", [SMOKERS], {"spend": None}),
        ("unknown-column", [SMOKERS, "SELECT SUM(height) FROM data"], {}),
        ("raw-rows", ["SELECT age FROM data"], {}),
        ("open-keys", ["SELECT name, COUNT(*) FROM data GROUP BY name"], {}),
        ("budget-exceeded", WORKLOAD, {"spend": Epsilon(2)}),
        ("spend-kind", WORKLOAD, {"spend": Rho(0.1)}),
    ):
        refused(code, publish, db, questions, **({"spend": Epsilon(0.5)} | options))
    assert db.spent == Epsilon.total(Fraction(0))


def test_trap_6_a_transcript_is_a_function_of_its_answers_alone(tmp_path: Path) -> None:
    """What is written down holds no fact of the rows: two tables that got the same noisy answers write the same.

    Control: other answers write something else.
    """
    schema = {"age": Int(0, 9), "name": Text()}
    one = publish(
        opened(schema, {"age": [1, 2, 3], "name": ["a", "b", "c"]}), ["SELECT COUNT(*) FROM data"], spend=Epsilon(1)
    )
    other = publish(opened(schema, {"age": [9], "name": ["zz"]}), ["SELECT COUNT(*) FROM data"], spend=Epsilon(1))
    answers = ((one.answers[0][0],),)
    same = Transcript(
        paid=one.paid, questions=other.questions, answers=answers, database=other.database, spend=other.spend
    )
    one.save(tmp_path / "one")
    same.save(tmp_path / "same")
    texts = {(tmp_path / name / "release.json").read_bytes() for name in ("one", "same")}
    assert len(texts) == 1
    assert b"zz" not in texts.pop()
    bare = replace(one, answers=((replace(answers[0][0], released=replace(answers[0][0].released, units=UNITS)),),))
    assert ReleaseFiles.of(bare).description()["facts"] != ReleaseFiles.of(one).description()["facts"]


def without_receipts(tree: object) -> object:
    if isinstance(tree, dict):
        return {name: without_receipts(part) for name, part in tree.items() if name not in ("receipt", "receipts")}
    return [without_receipts(part) for part in tree] if isinstance(tree, list) else tree


def names(tree: object) -> set[str]:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return {name for part in inner for name in names(part)} | (set(tree) if isinstance(tree, dict) else set())


def test_a_transcript_tells_nothing_of_its_askers_budget(tmp_path: Path) -> None:
    """Whatever the asker had, spent before or has left, the same is written down.

    Control: what this release itself cost is told.
    """
    texts = []
    for budget, before, declared in ((Epsilon(7), 0.25, None), (Epsilon(50), 11, 12345)):
        db = opened(COLUMNS, DATA, budget, size=declared)
        db.sql("SELECT COUNT(*) FROM data WHERE age > 50", spend=Epsilon(before))
        made = publish(exact(db), [BY_CITY, COUNTS], spend=Epsilon(2))
        texts.append(without_receipts(ReleaseFiles.of(made).description()))
        noisy = publish(db, [SMOKERS, Together((HALF, COUNTS))], spend=Epsilon(2))
        assert {(one.remaining, one.total) for several in noisy.answers for one in several} == {(None, None)}
        noisy.save(tmp_path / str(budget.epsilon))
        again = load(tmp_path / str(budget.epsilon))
        assert "left" not in repr(again[0]) + repr(again[1]) + repr(noisy[0])
        assert again.answer(SMOKERS).remaining is None
        assert again[0].spent == Epsilon(2)
        assert not {"budget", "size", "public_key", "durable"} & names(ReleaseFiles.of(noisy).description())
    assert texts[0] == texts[1]
    other = publish(exact(db), [BY_CITY, COUNTS], spend=Epsilon(3))
    assert without_receipts(ReleaseFiles.of(other).description()) != texts[0]


def test_what_is_written_grows_with_the_questions_and_not_with_their_square() -> None:
    """All answers have one event, a draw for each question: it is written once."""
    db = opened(COLUMNS, DATA)
    sizes = []
    for number in (20, 40, 80):
        made = publish(db, [COUNTS] * number, division="even", spend=Epsilon(1))
        sizes.append(len(str(ReleaseFiles.of(made).description()["facts"])))
    assert sizes[2] - sizes[1] < 2.2 * (sizes[1] - sizes[0])


def test_progress_is_told() -> None:
    """Nothing done, then all of it."""
    seen: list[tuple[int, int]] = []
    publish(opened(COLUMNS, DATA), [SMOKERS], spend=Epsilon(1), progress=lambda *at: seen.append(at))
    assert seen == [(0, 1), (1, 1)]


def test_a_persons_rows_and_the_unit_are_told() -> None:
    """The promise names whom it protects."""
    data = DATA | {"pid": np.arange(ROWS) // 2}
    db = opened(COLUMNS | {"pid": Int(0, ROWS)}, data, unit=Unit("pid", 2))
    made = publish(db, [SMOKERS], spend=Epsilon(1))
    assert made.paid.unit == Unit("pid", 2)
    assert made.answers[0][0].released.noise[0].law.scale == 2
    assert "publish" in {kind.kind for kind in sulq.release.KINDS}
