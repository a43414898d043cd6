"""Opening the box: clamped, shaped, fresh, and silent about what it held when something fails."""

from __future__ import annotations

import ast
import logging
import traceback
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import sulq.kernel.mechanisms
from sulq.errors import CuratorError
from sulq.kernel import entropy
from sulq.kernel.mechanisms import release
from sulq.kernel.mechanisms.table import chosen, released
from sulq.kernel.private import SATURATED as LIMIT
from sulq.kernel.private import Private
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw, Law

LAWS: list[Law] = [LaplaceLaw(Fraction(2)), GaussianLaw(Fraction(2)), BinomialLaw(20)]
SECRET = 987654321


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_saturation_neither_raises_nor_wraps_T5(law: Law) -> None:
    """T5: sums at +-(2^63 - 1) come back within the noise of +-2^62."""
    ends = np.array([2**63 - 1, -(2**63 - 1), -(2**63), 2**62, 2**62 + 1, 0], dtype=np.int64)
    noisy = release(law, Private(ends))
    expected = np.clip(ends, -LIMIT, LIMIT)
    assert np.abs(noisy - expected).max() < 200


@given(hnp.arrays(np.int64, 4), st.integers(-3, 3))
def test_the_clamp_moves_nothing_farther_apart_T5(values: np.ndarray, moved: int) -> None:
    """T5: what reaches the sampler is within 2^62 and no farther apart than what went in."""
    seen: list[np.ndarray] = []

    def add(clamped: np.ndarray) -> np.ndarray:
        seen.append(clamped)
        return clamped

    other = np.array([max(-(2**63), min(2**63 - 1, int(v) + moved)) for v in values], dtype=np.int64)
    released(Private(values), add)
    released(Private(other), add)
    assert np.abs(seen[0]).max() <= LIMIT
    assert all(abs(int(a) - int(b)) <= abs(moved) for a, b in zip(seen[0], seen[1], strict=True))


def test_without_the_clamp_sums_wrap_T5() -> None:
    """T5 control: noise on 2^63 - 1 itself, 63 times, is never below zero all 63 times unless it wraps."""
    ends = np.full(63, 2**63 - 1, dtype=np.int64)
    assert (ends + np.abs(release(LAWS[0], Private(np.zeros(63, dtype=np.int64)))) + 1).max() < 0
    assert release(LAWS[0], Private(ends)).min() > 0


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_any_shape_comes_back_and_the_exact_array_stays_as_it_was(law: Law) -> None:
    """Empty, flat and tabular boxes keep their shape; the exact values are not changed in place."""
    for shape in ((0,), (1,), (7,), (3, 4), (0, 5), ()):
        exact = np.full(shape, 5, dtype=np.int64)
        noisy = release(law, Private(exact))
        assert noisy.shape == shape
        assert noisy.dtype == np.int64
        assert (exact == 5).all()
        assert not np.shares_memory(noisy, exact)


@pytest.mark.parametrize(
    "value", [np.zeros(3), np.zeros(3, dtype=np.int32), [1, 2], 7, np.array([2**70], dtype=object)]
)
def test_what_is_not_64_bit_integers_is_not_released_T1(value: object) -> None:
    """T1: floats never meet noise; a wrong type is the curator's failure, said by its code alone."""
    with pytest.raises(CuratorError) as failure:
        release(LAWS[0], Private(value))
    assert failure.value.code == "noise-failed"


@pytest.mark.parametrize("law", LAWS[:2], ids=lambda law: law.kind)
def test_a_failing_sampler_does_not_print_the_sum_T31(
    law: Law, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """T31, T68: a sampler's text, its exception and the exact value are in no message, chain, traceback or log line."""

    def failing(_: int) -> bytes:
        raise ValueError(f"{SECRET} is not representable")

    monkeypatch.setattr(entropy, "random_bytes", failing)
    with caplog.at_level(logging.DEBUG), pytest.raises(CuratorError) as failure:
        release(law, Private(np.array([SECRET], dtype=np.int64)))
    error = failure.value
    assert error.code == "noise-failed"
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = "".join(traceback.format_exception(error)) + caplog.text + repr(error.args)
    assert str(SECRET) not in shown
    assert "noise failed: ValueError" in caplog.text
    frame = error.__traceback__
    while frame is not None:
        if "sulq" in frame.tb_frame.f_code.co_filename and "tests" not in frame.tb_frame.f_code.co_filename:
            assert not any(isinstance(value, np.ndarray) for value in frame.tb_frame.f_locals.values())
        frame = frame.tb_next


@pytest.mark.parametrize("returned", [np.zeros(2, dtype=np.int64), np.zeros(1), np.zeros((1, 1), dtype=np.int64)])
def test_a_sampler_that_gives_back_something_else_is_not_believed(returned: np.ndarray) -> None:
    """A wrong length, type or shape from the sampler is a failure, not an answer."""
    with pytest.raises(CuratorError):
        released(Private(np.zeros(1, dtype=np.int64)), lambda _: returned)


def test_only_the_release_opens_a_box() -> None:
    """Private.open is called in kernel/mechanisms/table.py and nowhere else in the mechanisms."""
    folder = Path(sulq.kernel.mechanisms.__file__).parent
    callers = {
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "open"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "exact"
    }
    assert callers == {"table.py"}


def test_a_number_derived_from_the_release_is_recomputed_bit_for_bit_T2() -> None:
    """T1, T2: answers are integers times a public step, so anything derived is a function of integers alone."""
    noisy = release(LaplaceLaw(Fraction(100)), Private(np.array([12345, 678], dtype=np.int64)))
    step = Fraction(1, 2**10)
    first = [float(int(value) * step) for value in noisy]
    again = [float(int(value) * step) for value in np.array(noisy.tolist(), dtype=np.int64)]
    assert first == again
    assert all(Fraction(value) / step == int(Fraction(value) / step) for value in first)
    porous = np.random.default_rng(1).laplace(0, 100, 1000) * float(step)  # control: float noise leaves the grid
    assert any(Fraction(value) / step != int(Fraction(value) / step) for value in porous)


def test_a_place_past_the_candidates_stands_for_none_and_nothing_else_does() -> None:
    """Of m candidates 0 to m - 1 may be told, and m where none is a possible answer; all else is a failure."""
    scores = Private(np.zeros((1, 3), dtype=np.int64))
    for place, none, passes in (
        (2, False, True),
        (3, False, False),
        (3, True, True),
        (4, True, False),
        (-1, True, False),
    ):

        def pick(_scores: np.ndarray, place: int = place) -> np.ndarray:
            return np.array([place], dtype=np.int64)

        if passes:
            assert chosen(scores, pick, none=none).tolist() == [[place]]
        else:
            with pytest.raises(CuratorError):
                chosen(scores, pick, none=none)
