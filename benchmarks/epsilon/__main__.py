"""`python -m benchmarks.epsilon [PART ...]`: measure the parts, or some of them, and write their sections."""

from __future__ import annotations

import importlib
import sys
from typing import Final

from benchmarks.epsilon.bars import PAGE, Section
from benchmarks.report import put

PARTS: Final[tuple[str, ...]] = (
    "keys",
    "bounds",
    "rows",
    "quantiles",
    "intervals",
    "workloads",
    "marginals",
    "components",
    "learners",
)


def main(names: list[str]) -> int:
    """Measure each part and write its section; the number of bars missed."""
    missed = 0
    for name in names or PARTS:
        section: Section = importlib.import_module(f"benchmarks.epsilon.{name}").run()
        PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), section.title, section.text()), encoding="utf-8")
        missed += section.missed
        print(f"{section.title}: {section.missed} of {len(section.bars)} bars missed", flush=True)
    return missed


if __name__ == "__main__":
    main(sys.argv[1:])
