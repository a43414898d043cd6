"""The analyst: foresee a price, ask, read the error bars, and meet a refusal."""

import tempfile
from pathlib import Path

import sulq
from examples import owner
from sulq import Epsilon, Rho, col


def main(folder: Path) -> None:
    """Ask the owner's visits a few questions."""
    with owner.main(folder) as db:
        question = sulq.Sums((col("days"),), by=(col("ward"),))
        print(db.foresee(question, spend=Epsilon(0.2)))
        print(db.sum("days", by="ward", spend=Epsilon(0.2)))
        print(db.mean("days", by="ward", spend=Rho(0.01)))
        print(db.count(col("days") > 14, within=60, beta=0.05, at_most=Epsilon(0.5)))
        try:
            db.count(spend=Epsilon(5))
        except sulq.errors.BudgetExceeded as refusal:
            print(refusal)
        print("left:", db.remaining)


if __name__ == "__main__":
    main(Path(tempfile.mkdtemp()))
