"""The person's side: shapes of reports, refusals by public facts, nothing remembered but in a diary."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon
from sulq.local import METHODS, Diary, Respondent


def test_one_record_gives_one_report() -> None:
    """A value alone, or a record by its fields; many give as many."""
    assert Respondent(["a", "b"], epsilon=1, method="krr").randomise("a").shape == ()
    assert Respondent(["a", "b"], epsilon=1, method="oue").randomise("a").shape == (2,)
    assert Respondent({"a": sulq.Bool(), "b": range(3)}, epsilon=1).randomise({"a": True, "b": 2}).shape == ()
    assert Respondent(5, epsilon=1, method="oue").randomise([1, 2, 3]).shape == (3, 5)
    assert Respondent(5, epsilon=1, method="hadamard").randomise([]).shape == (0,)


def test_a_report_cannot_be_changed_after() -> None:
    """What was drawn is what is sent."""
    reports = Respondent(5, epsilon=1, method="krr").randomise([1, 2, 3])
    with pytest.raises(ValueError, match="read-only"):
        reports[0] = 1


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), "1", True, 1e-9, 1e9, None])
def test_an_epsilon_that_is_none_is_refused(epsilon: object) -> None:
    """Also one so small that nothing is learned."""
    with pytest.raises(QuestionError) as refused:
        Respondent(3, epsilon=epsilon)  # type: ignore[arg-type]
    assert refused.value.code == "bad-loss"


def test_a_loss_or_a_number_is_an_epsilon() -> None:
    """As for spends."""
    assert Respondent(3, epsilon=Epsilon(0.1)).epsilon == Respondent(3, epsilon=0.1).epsilon == Epsilon(0.1)


def test_a_report_needs_a_diary() -> None:
    """Who is asked again must remember."""
    with pytest.raises(QuestionError) as refused:
        Respondent(3, epsilon=1).report(1, question="q")
    assert refused.value.code == "bad-parameter"
    with pytest.raises(QuestionError):
        Respondent(3, epsilon=1, diary=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["krr", "oue"])
def test_a_report_is_of_one_record(method: str) -> None:
    """Whatever the value is, a list among them: one report, at one price; what is refused follows from the form alone.

    A list is no declared value: it is answered by a random one, and not by an error that would tell of it (T30).
    """
    strange: list[object] = [[1], [1, 2], [], ([],), np.array([1, 2]), None, {}, object()]
    for values in strange:
        diary = Diary(Epsilon(1))
        found = Respondent(3, epsilon=1, method=method, diary=diary).report(values, question="q")
        assert found.shape == (() if method == "krr" else (3,))
        assert diary.remaining.amount == 0
    diary = Diary(Epsilon(1))
    several = Respondent({"a": range(3), "b": sulq.Bool()}, epsilon=1, method=method, diary=diary)
    with pytest.raises(QuestionError) as refused:
        several.report({"a": 1}, question="q")
    assert refused.value.code == "bad-table"
    assert diary.remaining == Epsilon(1)
    assert several.report({"a": [], "b": [True]}, question="q").ndim == (0 if method == "krr" else 1)


def test_the_law_of_a_report_can_be_audited() -> None:
    """The auditor's own enumeration of what a respondent says its law is; unknown records and long reports refused."""
    domain = {"a": sulq.Bool(), "b": list(range(3))}
    for method in METHODS:
        respondent = Respondent(domain, epsilon=0.7, method=method)
        laws = [respondent.pmf({"a": a, "b": b}) for a in (False, True) for b in range(3)]
        assert sulq.audit.exact_epsilon(laws) <= 0.7 + 1e-12
        assert sulq.audit.exact_epsilon(laws) == pytest.approx(0.7, rel=1e-6) or method == "bitwise"
    with pytest.raises(QuestionError) as unknown:
        respondent.pmf({"a": True, "b": 7})
    assert unknown.value.code == "unknown-category"
    with pytest.raises(QuestionError) as large:
        Respondent(64, epsilon=1, method="oue").pmf(3)
    assert large.value.code == "too-large"


def test_what_a_repr_tells_is_public() -> None:
    """The domain's size, the price, the method."""
    diary = Diary(Epsilon(1))
    respondent = Respondent(3, epsilon=1, method="krr", diary=diary)
    respondent.report(2, question="q")
    assert repr(respondent) == "Respondent(3 values, epsilon 1, method 'krr')"
    assert respondent.diary is diary


def test_randomising_is_fresh_every_time() -> None:
    """Twice the same values, not twice the same reports: 2^-1000 that all agree."""
    respondent = Respondent(2, epsilon=0.1, method="krr")
    values = np.zeros(1000, dtype=int)
    assert (respondent.randomise(values) != respondent.randomise(values)).any()
