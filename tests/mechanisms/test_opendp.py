"""The door to OpenDP: scales that are doubles, maps that agree, and the degenerate ones it would let through."""

from __future__ import annotations

import ast
import math
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sulq.mechanisms
from sulq.errors import QuestionError
from sulq.mechanisms import _opendp, mechanism, priced, release
from sulq.terms.law import LARGEST_SCALE, SMALLEST_SCALE, GaussianLaw, LaplaceLaw
from sulq.terms.private import Private


def test_T8_opendp_itself_gives_exact_answers_at_degenerate_scales() -> None:
    """T8 control: without our guard a scale of 1e-320 releases the exact value at a price of infinity."""
    raw = _opendp.measurement("laplace", 1e-320)
    assert raw([41, 42]) == [41, 42]
    assert raw.map(1) == math.inf


@given(st.floats() | st.floats(2.0**-10, 2.0**50), st.integers(0, 2**40))
def test_T8_no_release_whose_map_passes_its_price(scale: float, moved: int) -> None:
    """T8: any double at all is refused as a scale, or its map is finite and the price it is debited."""
    for law, sensitivity in ((LaplaceLaw, Fraction(moved)), (GaussianLaw, Fraction(moved) ** 2)):
        exact = Fraction(scale) if math.isfinite(scale) else Fraction(0)
        if not SMALLEST_SCALE <= exact <= LARGEST_SCALE:
            with pytest.raises(QuestionError):
                law(exact)
            continue
        chosen = law(exact)
        price = priced(chosen, sensitivity)
        theirs = mechanism(chosen).mapped(sensitivity)[1]
        assert math.isfinite(theirs)
        assert price <= Fraction(theirs) <= price * (1 + Fraction(1, 10**12))
        assert release(chosen, Private(np.zeros(1, dtype=np.int64))).shape == (1,)


def test_a_scale_that_is_no_double_is_refused() -> None:
    """The sampler takes a double; another scale than the priced one must not run."""
    for law in (LaplaceLaw(Fraction(1, 3)), GaussianLaw(Fraction(10, 3))):
        with pytest.raises(QuestionError) as refusal:
            mechanism(law)
        assert refusal.value.code == "too-little-noise"


@given(st.fractions(0, 10**12))
def test_the_mapped_move_is_never_smaller_than_the_sensitivity(squared: Fraction) -> None:
    """Square roots are rounded up and L1 moves to the next integer before OpenDP sees them."""
    assert Fraction(_opendp._root(squared)) ** 2 >= squared
    assert _opendp._whole(squared) >= squared
    assert _opendp._root(squared) == pytest.approx(math.sqrt(squared), rel=1e-12)


def test_a_move_past_64_bits_is_refused() -> None:
    """No sensitivity beyond what a clamped sum can move."""
    with pytest.raises(QuestionError) as refusal:
        priced(LaplaceLaw(Fraction(1)), Fraction(2**63))
    assert refusal.value.code == "too-large"


def test_measurements_are_constructed_once() -> None:
    """Construction costs as much as a call, so equal kinds and scales share one."""
    assert _opendp.measurement("laplace", 2.5) is _opendp.measurement("laplace", 2.5)
    assert _opendp.measurement("laplace", 2.5) is not _opendp.measurement("gaussian", 2.5)


def test_threads_share_a_measurement_and_not_its_noise() -> None:
    """Eight threads drawing from one cached measurement get different noise."""
    law = LaplaceLaw(Fraction(2**40))
    found: list[list[int]] = []

    def work() -> None:
        found.append(release(law, Private(np.zeros(200, dtype=np.int64))).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = [value for row in found for value in row]
    assert len(values) == len(set(values)) == 1600


def test_R11_opendp_is_used_for_integer_noise_alone() -> None:
    """R11: only these names are imported from OpenDP, in one file (entropy reads where it is installed)."""
    folder = Path(sulq.mechanisms.__file__).parent
    names: dict[str, set[str]] = {}
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opendp"):
                names.setdefault(path.name, set()).update(alias.name for alias in node.names)
            if isinstance(node, ast.Import):
                found = {alias.name for alias in node.names if alias.name.startswith("opendp")}
                names.setdefault(path.name, set()).update(found)
    used = {name: values for name, values in names.items() if values}
    assert used == {
        "_opendp.py": {
            "atom_domain",
            "vector_domain",
            "make_gaussian",
            "make_laplace",
            "l1_distance",
            "l2_distance",
            "enable_features",
        },
        "entropy.py": {"opendp"},
    }
