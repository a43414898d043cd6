"""The auditor: read the transcript, recompute what was spent, verify the ledger, and say what it means."""

import tempfile
from fractions import Fraction
from pathlib import Path

import sulq
from examples import owner
from sulq import Epsilon


def main(folder: Path) -> None:
    """Ask twice, then check that the ledger accounts for exactly that."""
    with owner.main(folder) as db:
        db.count(spend=Epsilon(0.1))
        db.mean("days", by="ward", spend=Epsilon(0.2))
        lines = db.transcript()
        total = sum(line["event"].epsilon for line in lines)
        print("spent as the ledger adds it up:", total, "and as it says:", db.spent, total == Fraction(3, 10))
        for line in lines:
            for draw in line["event"].draws:
                print(line["seq"], draw.mechanism, "moved by at most", draw.sensitivity, "scale", float(draw.scale))
        print(db.verify())
        print(*sulq.audit.report(db.facts), sep="\n")  # what all of that can have told about one person


if __name__ == "__main__":
    main(Path(tempfile.mkdtemp()))
