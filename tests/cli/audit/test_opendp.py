"""OpenDP as a second opinion: its map is our price, its absence is said, and nothing that runs needs it."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_laplace
from opendp.metrics import l1_distance
from typer.testing import CliRunner

import sulq
from sulq.cli import app
from sulq.cli.audit import opendp as check
from sulq.cli.audit.laws import LawScope, Result
from sulq.errors import QuestionError, SetupError
from sulq.kernel.mechanisms import priced
from sulq.language.law import LARGEST_SCALE, SMALLEST_SCALE, GaussianLaw, LaplaceLaw

SRC = Path(sulq.__file__).parent
MEASUREMENT = check.load()  # enables `contrib`, too


def above_root(squared: Fraction) -> float:
    """The smallest double whose square is no smaller."""
    root = math.sqrt(float(squared))
    while Fraction(root) ** 2 < squared:
        root = math.nextafter(root, math.inf)
    return root


@given(st.floats() | st.floats(2.0**-10, 2.0**50), st.integers(0, 2**40))
def test_the_map_of_opendp_is_our_price_T8_T20(scale: float, moved: int) -> None:
    """T8, T20: any double at all is refused as a scale, or the map is finite and our price, rounded up a little."""
    exact = Fraction(scale) if math.isfinite(scale) else Fraction(0)
    for family in (LaplaceLaw, GaussianLaw):
        if not SMALLEST_SCALE <= exact <= LARGEST_SCALE:
            with pytest.raises(QuestionError):
                family(exact)
            continue
        assert check.agrees(family(exact), family(exact), moved)


@given(st.floats(2.0**-10, 2.0**50), st.fractions(Fraction(1, 10**6), 10**12))
def test_the_map_agrees_where_a_norm_is_no_whole_number_T20(scale: float, norm: Fraction) -> None:
    """T20: a squared L2 norm by its root, rounded up; an L1 norm by the next whole one, which costs more."""
    gaussian, laplace = GaussianLaw(Fraction(scale)), LaplaceLaw(Fraction(scale))
    exact = priced(gaussian, norm)
    assert exact <= Fraction(MEASUREMENT(gaussian).map(above_root(norm))) <= exact * (1 + check.ROUNDED)
    assert priced(laplace, norm) <= Fraction(MEASUREMENT(laplace).map(math.ceil(norm)))


@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("factor", [Fraction(101, 100), Fraction(99, 100)])
def test_a_map_of_another_scale_does_not_agree_T20(family: type, factor: Fraction) -> None:
    """T20 control: a scale off by a hundredth, either way."""
    law = family(Fraction(100))
    assert check.agrees(law, law, 3)
    assert not check.agrees(law, family(law.scale * factor), 3)


def test_opendp_itself_gives_exact_answers_at_degenerate_scales_T8() -> None:
    """T8 control: a scale of 1e-320, which no law has, releases the exact value at a price of infinity."""
    raw = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=1e-320)
    assert raw([41, 42]) == [41, 42]
    assert raw.map(1) == math.inf


def test_the_check_passes_and_notices_a_wrong_sampler_and_a_wrong_price_T7(monkeypatch: pytest.MonkeyPatch) -> None:
    """T7, T20: it passes here; with their noise a tenth wider, or our price a hundredth lower or higher, it fails."""
    found = check.compare(LawScope())
    assert found.passed, found.told
    assert "6 of 6 controls noticed" in found.told
    monkeypatch.setattr(check, "DRAWS", (5_000, 5_000))
    assert check.compare(LawScope()).passed
    with monkeypatch.context() as wider:
        honest = check.drawn
        wider.setattr(check, "drawn", lambda law, cells: np.rint(honest(law, cells) * np.float64(1.1)).astype(np.int64))
        assert not check.compare(LawScope()).passed
    for factor in (Fraction(99, 100), Fraction(101, 100)):
        monkeypatch.setattr(check, "priced", lambda *call, factor=factor: priced(*call) * factor)
        assert not check.compare(LawScope()).passed


def without_opendp(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opendp", "opendp.domains", "opendp.measurements", "opendp.metrics", "opendp.mod"):
        monkeypatch.setitem(sys.modules, name, None)


def test_where_opendp_is_absent_the_check_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sulq audit --opendp` is refused before any check runs; without the option OpenDP is not looked for."""
    audit = sys.modules.setdefault("sulq.cli.audit.checks", __import__("sulq.cli.audit.checks", fromlist=["CHECKS"]))
    ran: list[bool] = []

    def good(_: LawScope) -> Result:
        ran.append(True)
        return Result(passed=True, told="fine")

    monkeypatch.setattr(audit, "CHECKS", {"one": good})
    monkeypatch.setattr(check, "compare", good)
    done = CliRunner().invoke(app, ["audit", "--opendp"])
    assert (done.exit_code, ran) == (0, [True, True])
    assert "OpenDP" in done.output
    without_opendp(monkeypatch)
    with pytest.raises(SetupError) as refused:
        check.load()
    assert refused.value.code == "missing-extra"
    assert "pip install 'opendp>=0.16'" in str(refused.value)
    assert CliRunner().invoke(app, ["audit", "--opendp"]).exit_code != 0
    assert len(ran) == 2
    assert CliRunner().invoke(app, ["audit"]).exit_code == 0
    assert len(ran) == 3


RUN = """
import sys
sys.modules["opendp"] = None
import pyarrow as pa
from sulq import Above, Epsilon, EpsilonDelta, Int, OpenSums, Rho, Sums, Text, col, connect, lit
table = pa.table({"x": [1, 2, 3], "word": ["a", "b", "b"]})
with connect(table, columns={"x": Int(0, 9), "word": Text()}, budget=EpsilonDelta(90, 1e-6)) as db:
    for spend in (Epsilon(1), Rho(0.01), EpsilonDelta(1, 1e-9)):
        db.count(spend=spend, fresh=True)
    db.ask(Above(Sums((lit(1),)), 1), spend=Epsilon(1))
    db.ask(OpenSums((lit(1),), by=(col("word"),)), spend=EpsilonDelta(1, 1e-9))
    print("answered", len(db.transcript()), [name for name in sys.modules if name.startswith("opendp.")])
"""


def test_nothing_that_runs_needs_opendp() -> None:
    """Sums by both laws, a threshold and groups found in the data are answered where OpenDP cannot be imported."""
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False)
    assert done.stdout == "answered 5 []\n", done.stderr


def test_opendp_is_asked_for_integer_noise_alone() -> None:
    """Only these names are imported from OpenDP, in one file of the package."""
    names: dict[str, set[str]] = {}
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opendp"):
                names.setdefault(path.name, set()).update(alias.name for alias in node.names)
            if isinstance(node, ast.Import) and any(alias.name.startswith("opendp") for alias in node.names):
                names.setdefault(path.name, set()).add("opendp")
    used = {"atom_domain", "vector_domain", "make_gaussian", "make_laplace", "l1_distance", "l2_distance"}
    assert names == {"opendp.py": {*used, "enable_features"}}
