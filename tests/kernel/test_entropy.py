"""Where random bits come from: no seed, no copy across a fork, no answer without them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from sulq.errors import CuratorError
from sulq.kernel import entropy
from sulq.kernel.mechanisms import release
from sulq.kernel.private import Private
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw, Law, PassedLaw
from tests.trees import SRC, tree

TRUSTED = ("kernel", "curator", "language", "answers", "sources", "local")
SEEDS = re.compile(r"(^|_)(seed|seeds|random_state|set_state)(_|$)", re.IGNORECASE)
SOURCES = ("random", "secrets", "numpy.random", "uuid")


def surfaces(tree: ast.AST) -> Iterator[str]:
    """Names under which a caller could fix randomness: parameters, keywords, fields, settings, environment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and SEEDS.search(node.arg):
            yield node.arg
        if isinstance(node, ast.keyword) and node.arg and SEEDS.search(node.arg):
            yield node.arg
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and SEEDS.search(node.target.id):
            yield node.target.id
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"[-\w]*seed[-\w]*", node.value, re.IGNORECASE)
        ):
            yield node.value
        if isinstance(node, ast.Attribute) and node.attr in {"seed", "setstate", "set_state"}:
            yield node.attr


def generators(tree: ast.AST) -> Iterator[str]:
    """Sources of random numbers that are imported or reached through numpy."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in SOURCES)
        if isinstance(node, ast.ImportFrom):
            names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            yield from (name for name in names if name in SOURCES)
        if isinstance(node, ast.Attribute) and node.attr == "random" and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.random"
        if isinstance(node, ast.Attribute) and node.attr in {"urandom", "getrandom"}:
            yield f"os.{node.attr}"


def parsed(*folders: str) -> dict[str, ast.AST]:
    paths = [path for folder in folders for path in (SRC / folder).rglob("*.py")]
    return {path.relative_to(SRC).as_posix(): tree(path) for path in paths}


def test_nothing_in_the_package_takes_a_seed_T66() -> None:
    """T66: no parameter, keyword, field, setting or attribute of the shipped package fixes randomness."""
    found = {name: sorted(set(surfaces(tree))) for name, tree in parsed("").items()}
    assert {name: names for name, names in found.items() if names} == {}


def test_trusted_code_draws_bits_in_one_place_T66() -> None:
    """T66: in the trusted half the operating system's generator is read in kernel/entropy.py and nowhere else."""
    found = {name: sorted(set(generators(tree))) for name, tree in parsed(*TRUSTED).items()}
    assert {name: names for name, names in found.items() if names} == {"kernel/entropy.py": ["os.urandom"]}


@pytest.mark.parametrize(
    "text",
    [
        "def f(seed=None): ...",
        "g(random_state=1)",
        "class A:\n    seed: int = 0",
        "import os\nos.environ.get('SULQ_SEED')",
        "rng.seed(3)",
        "option = '--noise-seed'",
    ],
)
def test_a_seed_surface_is_found_T66(text: str) -> None:
    """T66 control: each way of smuggling in a seed is noticed."""
    assert list(surfaces(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "from numpy.random import default_rng",
        "from numpy import random",
        "np.random.normal()",
        "os.urandom(8)",
    ],
)
def test_another_generator_is_found_T66(text: str) -> None:
    """T66 control: each other source of random numbers is noticed."""
    assert list(generators(ast.parse(text)))


def draw_in_child(law: Law, cells: int) -> list[int]:
    """Draw in a forked child and send the numbers back."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            values = release(law, Private(np.zeros(cells, dtype=np.int64))).astype("<i8").tobytes()
            os.write(writer, values)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        received = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return np.frombuffer(received, dtype="<i8").tolist()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(2**50)), GaussianLaw(Fraction(2**50))], ids=lambda law: law.kind)
def test_forked_children_do_not_repeat_noise_T67(law: Law) -> None:
    """T67: 64 children of one process, 10 draws each, and their parent: no value twice."""
    parent = release(law, Private(np.zeros(10, dtype=np.int64))).tolist()
    values = parent + [value for _ in range(64) for value in draw_in_child(law, 10)]
    assert len(values) == 650
    assert len(set(values)) == 650


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_children_do_not_repeat_coins_T67() -> None:
    """T67: 64 children drawing 10 cells of 2^16 coins each: no two children agree; a copied state would (control)."""
    law = BinomialLaw(2**16)
    rows = [tuple(draw_in_child(law, 10)) for _ in range(64)]
    assert len(set(rows)) == 64
    state = np.random.default_rng(1)
    assert len({tuple(np.random.default_rng(1).integers(0, 99, 10)) for _ in range(64)}) == 1
    assert state.integers(0, 99) >= 0


def test_an_entropy_failure_gives_no_answer_T68(monkeypatch: pytest.MonkeyPatch) -> None:
    """T68: when the generator fails, every mechanism ends in `noise-failed` and releases nothing."""

    def fail(*_: object) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr(os, "urandom", fail)
    for law in (LaplaceLaw(Fraction(2)), GaussianLaw(Fraction(2)), BinomialLaw(20), PassedLaw(Fraction(2), 5)):
        for cells in (1, 3, 1000):
            with pytest.raises(CuratorError) as failure:
                release(law, Private(np.zeros(cells, dtype=np.int64)))
            assert failure.value.code == "noise-failed"


def test_fewer_bytes_than_asked_for_are_refused_T68(monkeypatch: pytest.MonkeyPatch) -> None:
    """T68: a short read is an error, not short noise."""
    monkeypatch.setattr(os, "urandom", lambda count: b"\x00" * (count // 2))
    with pytest.raises(OSError, match="fewer"):
        entropy.random_bytes(8)
    monkeypatch.undo()
    assert len(entropy.random_bytes(8)) == 8
    assert entropy.random_bytes(16) != entropy.random_bytes(16)
