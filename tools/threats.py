"""The threats sulq is built and tested against, by number, and the tests that carry their numbers in their names."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]

THREATS: Final = (
    "Floating-point Laplace noise: outputs possible under one data set alone identify it",
    "The last bits of value plus noise give the value away",
    "The same for floating-point Gaussian noise",
    "Sensitivity understated because float sums round and depend on order",
    "Overflow or wrap-around of integer sums",
    "NaN, infinities, NULL, negative zero and subnormals slip past a clamp",
    "A sampler that does not follow its law",
    "Degenerate scales: no noise, or noise stuck at the end of the range",
    "Noise shared between cells, or correlated",
    "The same noise for the same question, free of charge",
    "The clamp sits on the column instead of the summed expression",
    "Missing bounds that lead to missing noise",
    "Clipped data computed, unclipped data used; one bound taken for the other",
    "Contributions bounded wrongly: heavy persons, shared values, merged groups",
    "Joins that multiply rows; a key that is not unique",
    "One person under several spellings of an id",
    "The number of rows taken as public; one relation's sensitivity used for another",
    "An operation taken for row-wise that is not",
    "Free answers inferred from declarations, such as a known number of rows",
    "Mechanism and proof disagree",
    "Bounds or categories taken from the data",
    "A table declared public that was derived from private data",
    "User-supplied code with side effects",
    "The presence of a rare group key",
    "A threshold off by one, truncated, or on the wrong tail",
    "Order of rows, duplicates, NULL against zero, changing types",
    "Length, compression, pagination or status of a response",
    "Intervals and quality flags computed from exact values",
    'Suppression and "not enough data" messages',
    "Exceptions that depend on the data",
    "Error, log or trace text that carries a cell",
    "Memory or time that runs out for some data only",
    "Errors at load time that tell a later analyst something",
    "A question that makes one row slow",
    "Running time that depends on the data",
    "The sampler's time reveals the size of the noise",
    "An overrun deadline",
    "State one question leaves for the next",
    "A cache that reveals others' questions or data",
    "Plans, cardinalities, progress and metrics",
    "A process beside us: power, caches, memory",
    "Several requests spend the same budget",
    "A crash between computing and debiting",
    "Replays and retries",
    "Budget given back after an error",
    "An old ledger restored",
    "Tampering, bit rot, a torn tail",
    "Failing fsync, a full disk, a read-only file system",
    "A bug in the ledger's storage engine",
    "A clock that jumps",
    "Epsilon as NaN, negative, infinite, tiny, true or text; duplicate JSON keys",
    "Float accounting: tiny spends vanish, sums drift",
    "Wrong composition",
    "Colluding analysts",
    "One analyst uses up everybody's budget",
    "A budget reset by renaming, copying or registering again",
    "Repeated releases over growing data",
    "The price of a question as an oracle",
    "The remaining budget as a channel",
    "The owner tops up, edits or deletes",
    "Reconstruction by linear programming",
    "Differencing, trackers, averaging, the same question in other words",
    "Membership and tracing",
    "Canaries found in one run",
    "Data inserted or ordered by the attacker",
    "A random generator that can be seeded or foreseen",
    "Generator state duplicated by fork or snapshot",
    "Entropy that fails",
    "SQL that reaches files or the network",
    "Two parsers that read one text differently",
    "Injection through identifiers and literals",
    "An engine that reads Python variables by name",
    "Functions that run SQL from text",
    "Expression bombs",
    "A question that does not stop",
    "Memory or disk exhausted",
    "A hostile data file",
    "An open Spark",
    "Broken authorization",
    "Stolen tokens",
    "Requests forged across sites",
    "Scripts and formulas in names, keys and exports",
    "Paths and addresses in a data set's location",
    "Deserialising code",
    "Floods and slow requests",
    "No TLS, or a downgrade",
    "Debug pages and default passwords",
    "Injected log lines, missing audit",
    "A compromised dependency",
    "File modes, core dumps, swap, temporary files",
    "An upgrade that loses or reinterprets spends",
    "No way to report, no list of known vulnerabilities",
    "A guarantee that misleads: rows sold as persons, epsilon hidden, a large delta",
    "A demo or dry run without noise on private data",
    "The owner copies data for debugging",
    "One record's bytes change how other records are read",
    "Distinct ids become one person",
    "A person space taken for a path: the same people under another name have a fresh budget",
    "A cell that lets connect pass and the question fail",
    "Work that one person's cells cause decides the outcome at the time limit",
    "A fault outside the counted trusted half multiplies the loss",
    "Identical questions in flight are each charged, or one is answered unpaid",
    "One principal's free or long calls stop the others",
    "Health, logs or metrics that lie or leak",
    "A file put back under a live object of the local model or a live ledger",
)

REACHED: Final = (
    *range(1, 23), *range(24, 34), *range(38, 41), *range(42, 61), *range(66, 78), *range(79, 83), *range(89, 95),
    *range(96, 101), 102, 104, 105,
)  # fmt: skip
"""The threats this version answers: each has a test that names it."""

CONTROLLED: Final = (
    *(1, 4, 5, 6, 9, 10, 11, 13, 14, 15, 17, 20, 22, 24, 25, 27, 31),
    *(40, 42, 43, 52, 57, 67, 69, 70, 71, 72, 73, 74, 77, 90, 96, 97, 98, 100, 102),
)  # fmt: skip
"""Those of them where a test could pass for want of sight: each has a control, something bad that must be caught."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A test that names a threat, with the bar it sets and the control beside it, as its docstring tells them."""

    test: str
    bar: str
    control: str


@functools.cache
def tests() -> dict[int, list[Shown]]:
    """Every test by the threats in its name (test_..._T31, test_..._T8_T19) or its docstring's brackets."""
    found: dict[int, list[Shown]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            text = " ".join((ast.get_docstring(node) or "").split())
            named = re.findall(r"(?<=_)T(\d{1,3})(?=_|$)", node.name)
            cited = [
                number for group in re.findall(r"\(([^()]*)\)", text) for number in re.findall(r"\bT(\d{1,3})\b", group)
            ]
            shown = Shown(
                f"{path.relative_to(ROOT).as_posix()}::{node.name}", _said("Bar", text), _said("Control", text)
            )
            for number in dict.fromkeys(map(int, [*named, *cited])):
                found.setdefault(number, []).append(shown)
    return found


def _said(label: str, text: str) -> str:
    """What a docstring says after a label, up to the next one."""
    match = re.search(rf"\b{label}: (.*?)(?= (?:Bar|Control): |$)", text)
    return match[1].rstrip(".") if match else ""
