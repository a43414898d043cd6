"""A count by a million declared keys over HTTP and in the console: every key once, in order, with its own count."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq.service.console.views.answer import MAX_ROWS_SHOWN
from tests.service.console.visiting import Visitor
from tests.service.office import Office

ROWS = 300_000
KEYS = {"whole numbers": 1_000_000, "texts": 131_072}  # a million texts take a minute, of which most is the list's
FAR = 40  # from a count at epsilon 1, but once in 1e17 draws
SQL = "SELECT k, COUNT(*) AS n FROM survey GROUP BY k"


def declared(kind: str, number: int) -> tuple[pa.Table, sulq.Int | sulq.Category, list[object], np.ndarray]:
    """Rows of so many keys, their declaration, the keys in order, and how many rows each has."""
    drawn = np.random.default_rng(1).integers(0, number, ROWS) ** 2 // number  # many keys have no row, some have many
    counts = np.bincount(drawn, minlength=number)
    if kind == "whole numbers":
        return pa.table({"k": drawn}), sulq.Int(0, number - 1), list(range(number)), counts
    keys = [f"key{i:07d}" for i in range(number)]
    return pa.table({"k": pa.array(keys).take(pa.array(drawn))}), sulq.Category(keys), keys, counts


@pytest.mark.parametrize("kind", KEYS)
def test_a_count_by_very_many_keys_is_served_whole(kind: str, tmp_path: Path) -> None:
    """HTTP has all rows, the console its first ones and how many more. Control: other counts are told apart."""
    table, column, keys, counts = declared(kind, KEYS[kind])
    db = sulq.connect(table, table="survey", columns={"k": column}, budget=sulq.Epsilon(1000), synthetic=True)
    with Visitor(Office(tmp_path, survey=db)) as visitor:
        token = {"Authorization": f"Bearer {visitor.office.tokens['analyst']}"}
        asked = {"sql": SQL, "spend": {"epsilon": 1}, "fresh": True}
        reply = visitor.request("POST", "/v1/datasets/survey/sql", json=asked, headers=token)
        assert reply.status_code == 200, reply.text[:500]
        rows = reply.json()["rows"]
        assert [key for key, _ in rows] == [*keys, None]  # the last one has the rows without a key
        told = np.array([n for _, n in rows[:-1]])
        assert np.abs(told - counts).max() < FAR
        assert np.abs(told - np.roll(counts, 1)).max() > FAR
        visitor.sign_in("analyst")
        page = visitor.send("/datasets/survey/ask", by="price", amount="1", fresh="yes", sql=SQL)
        assert page.status_code == 200
        cells = re.findall(r"<tr><td>([^<]*)</td><td class=\"num\">(-?[\d,]+) <", page.text)
        assert [key for key, _ in cells] == [str(key) for key in keys[:MAX_ROWS_SHOWN]]
        shown = np.array([int(n.replace(",", "")) for _, n in cells])
        assert np.abs(shown - counts[:MAX_ROWS_SHOWN]).max() < FAR
        assert f"{len(keys) + 1 - MAX_ROWS_SHOWN:,} more rows" in page.text
