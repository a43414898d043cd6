"""The analyst who knows SQL: look at the price, ask, ask again for nothing, and divide a total over a workload."""

import tempfile
from pathlib import Path

from examples import owner
from sulq import Epsilon

WARDS = "SELECT ward, COUNT(*) AS visits, AVG(days) AS mean FROM visits GROUP BY ward"


def main(folder: Path) -> None:
    """Ask the owner's visits in SQL."""
    with owner.main(folder) as db:
        print(db.explain(WARDS, spend=Epsilon(0.4)))
        print(db.sql(WARDS, spend=Epsilon(0.4)))
        print(db.sql(WARDS.lower(), spend=Epsilon(0.4)))  # the same question gets the same answer, free
        print(db.sql("SELECT COUNT(*) FROM visits WHERE days > 14", within=60))
        plan = db.plan(["SELECT MEDIAN(days) FROM visits", "SELECT SUM(days) FROM visits"], spend=Epsilon(0.5))
        print(plan)
        print(*plan.ask(), sep="\n")


if __name__ == "__main__":
    main(Path(tempfile.mkdtemp()))
