"""How good what is published once is: marginals of contingency tables, and synthetic data.

    python -m benchmarks.release [--runs 10] [--seconds 300] [--keep FILE] [--no-page]

Writes docs/benchmarks-release.md; a part of `make bench`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import argparse
import datetime
import importlib.metadata
import platform
from pathlib import Path

from benchmarks import release_aim, release_costs, release_marginals, release_synthetic

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks-release.md"
PACKAGES = ("opendp", "mbi", "jax", "highspy", "duckdb", "numpy")


def run(runs: int = 10, seconds: float = 300.0, keep: Path | None = None) -> str:
    """Measure everything; gives the page."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = [
        "# Publishing once, measured",
        "",
        "`python -m benchmarks.release`, a part of `make bench`, writes this page.",
        f"{today}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}.",
        "",
        *release_marginals.report(runs, seconds, keep=keep),
        "",
        *release_costs.report(runs),
        "",
        *release_synthetic.report(runs, keep=keep and keep.with_suffix(".synthetic.json")),
        "",
        *release_aim.report(),
    ]
    return "\n".join(rows) + "\n"


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="runs of every cell of the marginals")
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a contender's cell of them ends")
    parser.add_argument(
        "--keep",
        type=Path,
        help="a file of scores (those of synthetic data beside it): what is in it is not measured again",
    )
    parser.add_argument("--no-page", action="store_true", help="print only")
    given = parser.parse_args()
    text = run(given.runs, given.seconds, given.keep)
    print(text)
    if not given.no_page:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
