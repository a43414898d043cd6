"""The owner: declare a file of visits, whom it is about and what may be lost; prepare it once."""

import tempfile
from pathlib import Path

import pandas as pd

import sulq
from sulq.api.database import Database


def main(folder: Path) -> Database:
    """Write a small file, open it, and prepare it; returns the open database."""
    visits = pd.DataFrame(
        {
            "patient": [i // 2 for i in range(4_000)],
            "ward": ["north", "south", "east", "west"] * 1_000,
            "days": [i % 21 for i in range(4_000)],
        }
    )
    visits.to_parquet(folder / "visits.parquet")
    db = sulq.connect(
        folder / "visits.parquet",
        columns={"ward": ["north", "south", "east", "west"], "days": sulq.Int(0, 60)},
        unit=sulq.Unit("patient", rows=2),
        budget=sulq.EpsilonDelta(2.0, 1e-6),
    )
    db.prepare()
    print(db.facts)
    return db


if __name__ == "__main__":
    main(Path(tempfile.mkdtemp())).close()
