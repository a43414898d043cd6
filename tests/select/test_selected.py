"""A selection is kept as JSON and read back; what is none is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

from sulq import Epsilon, Rho, Unit
from sulq.answers.answer import Receipt
from sulq.errors import QuestionError, SetupError
from sulq.language.law import ExponentialLaw, FlipLaw
from sulq.select import Selected, load

RECEIPT = Receipt(3, "ab" * 32, "cd" * 32, "")


@pytest.mark.parametrize("candidate", ["Lod", 0.3, 7, True, (0.0, 12.5)], ids=str)
@pytest.mark.parametrize(("law", "spent"), [(FlipLaw, Epsilon(0.5)), (ExponentialLaw, Rho(0.02))])
def test_what_was_saved_is_loaded(tmp_path: Path, candidate: object, law: type, spent: object) -> None:
    """Every field, exactly."""
    made = Selected(
        candidate, 1, 5, law(Fraction(5, 2), 5), Fraction(1, 8), "revenue", spent, Unit("pid", 2), "dp", (RECEIPT,)
    )
    made.save(tmp_path / "winner.json")
    assert load(tmp_path / "winner.json") == made


def test_the_utility_bound_is_in_the_utilitys_own_unit_S3_9() -> None:
    """Within scale * (ln m + s) units of score, but for e^-s; a unit of score is a step."""
    law = FlipLaw(Fraction(40), 100)
    made = Selected("a", 0, 100, law, Fraction(1, 100), "revenue", Epsilon(1), Unit(), "dp", ())
    for s in (1.0, 3.0, 9.0):
        assert made.within(math.exp(-s)) <= 0.4 * (math.log(100) + s)
    assert made.within(0.05) == law.accuracy(0.05) / 100
    for beta in (0, 1, True, "a"):
        with pytest.raises(QuestionError):
            made.within(beta)


def test_what_is_no_selection_is_refused(tmp_path: Path) -> None:
    """No file, no JSON, another format, a field of another kind."""
    with pytest.raises(SetupError, match="no selection"):
        load(tmp_path / "none.json")
    made = Selected("a", 0, 2, FlipLaw(Fraction(1), 2), Fraction(1), "sum", Epsilon(1), Unit(), "dp", ())
    with pytest.raises(SetupError, match="cannot be written"):
        made.save(tmp_path)
    file = tmp_path / "winner.json"
    made.save(file)
    text = file.read_text(encoding="utf-8")
    for wrong in (
        "{",
        "[]",
        "{}",
        text.replace('"format": 1', '"format": 2'),
        text.replace('"FlipLaw"', '"LaplaceLaw"'),
        text.replace('"place": 0', '"place": "x"'),
        text.replace('"Unit"', '"Epsilon"'),
    ):
        assert wrong != text
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(QuestionError) as refused:
            load(file)
        assert refused.value.code == "bad-release"
