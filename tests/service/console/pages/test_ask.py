"""The page on which questions are asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import sulq
from tests.service.console.visiting import Visitor, shown
from tests.service.office import Office


def test_every_table_s_columns_stand_beside_the_editor(tmp_path: Path) -> None:
    """By tables, each with what is public of it, and a question to begin with of each private one."""
    people = pa.table({"pid": ["a", "b"], "age": [41, 67]})
    stays = pa.table({"pid": ["a", "a"], "days": [3, 4], "ward": [1, 2]})
    wards = pa.table({"code": [1, 2], "beds": [10, 20]})
    data = sulq.connect(
        {"people": people, "stays": stays, "wards": wards},
        columns={
            "people": {"age": (0, 120)},
            "stays": {"days": (0, 30), "ward": (0, 9)},
            "wards": {"code": (0, 9), "beds": (0, 99)},
        },
        unit=sulq.Unit("pid", rows=5),
        keys={"people": "pid", "wards": "code"},
        public=["wards"],
        budget=sulq.Epsilon(9),
        synthetic=True,
    )
    with Visitor(Office(tmp_path, survey=data)) as visitor:
        visitor.sign_in("analyst")
        words = shown(visitor.get("/datasets/survey/ask")).words
        for said in (
            "Tables people , stays , wards", "Columns of stays days whole number, 0 to 30 ward whole number, 0 to 9",
            "Columns of wards public code whole number, 0 to 9, one row each", "How many rows of stays",
        ):  # fmt: skip
            assert said in words, said
        assert "How many rows of wards" not in words
