"""Sulq beside every peer: queries, accuracy, learning, marginals, noise, service, growing tables, keys, shapes.

    python -m benchmarks.versus [--workloads A B ...] [--rows 10000000] [--keep FILE] [--only PEER] [--page]

Contenders run in environments of their own ($SULQ_PEERS_HOME or .build/peers, made from
benchmarks/versus/environments/*.txt), over tables generated once ($SULQ_BENCH_DATA or .build/bench).
Writes docs/benchmarks-peers.md and its plots; a part of `make bench FULL=1`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.kept import Kept
from benchmarks.versus import page, parts
from benchmarks.versus.cast import OTHERS, OURS
from benchmarks.versus.measure import ROUNDS, SECONDS, Bench

WORKLOADS = ("A", "B", "C", "D", "E", "F", "G", "H", "I")
ROWS = 10_000_000


def run(bench: Bench, workloads: tuple[str, ...] = WORKLOADS, *, rows: int = ROWS, sizes: tuple[int, ...]) -> None:
    """Measure what is wanted and not kept yet."""
    steps = {
        "A": lambda: parts.queries(bench, rows),
        "B": lambda: parts.accuracy(bench),
        "C": lambda: parts.kernels(bench),
        "D": lambda: parts.marginals(bench),
        "E": lambda: parts.noise(bench),
        "F": lambda: parts.service(bench),
        "G": lambda: parts.scaling(bench, sizes),
        "H": lambda: parts.open_keys(bench),
        "I": lambda: parts.shapes(bench),
    }
    for name in workloads:
        steps[name]()
    if "G" in workloads:
        parts.persons(bench, tuple(size for size in sizes if size in parts.SIZES[1:]))
        parts.spark(bench)


def main(words: list[str] | None = None) -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="*", choices=WORKLOADS, default=list(WORKLOADS), help="some of them")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the queries' table")
    parser.add_argument("--sizes", nargs="*", type=int, default=list(parts.SIZES), help="rows of the growing table")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="a contender's, for a workload")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each comparison, at most")
    parser.add_argument("--keep", type=Path, help="a file of figures: what is in it is not measured again")
    parser.add_argument(
        "--only", nargs="*", default=[], choices=[who.name for who in (OURS, *OTHERS)], help="some contenders"
    )
    parser.add_argument("--log", type=Path, help="where contenders' own words go; default: nowhere")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the kept figures")
    given = parser.parse_args(words)
    if given.keep:
        given.keep.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sulq-versus-") as scratch:
        bench = Bench(Kept(given.keep), given.seconds, given.rounds, tuple(given.only), given.log, scratch)
        if not given.page:
            run(bench, tuple(given.workloads), rows=given.rows, sizes=tuple(given.sizes))
    page.write(bench.kept.lines)


if __name__ == "__main__":
    main()
