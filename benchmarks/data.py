"""Generated tables of the benchmarks, written as Parquet by DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb

import sulq

ROWS = 10_000_000
COLUMNS = {
    "age": sulq.Int(0, 120),
    "income": sulq.Real(0, 200_000),
    "region": sulq.Category([f"r{i:02d}" for i in range(50)]),
    "smoker": sulq.Bool(),
}


def survey(path: Path, rows: int = ROWS) -> Path:
    """One row a person: age, income, one of 50 regions, smoking."""
    duckdb.sql(f"""
        COPY (SELECT i AS id, CAST(floor(random() * 100) AS INTEGER) AS age, random() * 180000 AS income,
                     'r' || lpad(CAST(CAST(floor(random() * 50) AS INTEGER) AS VARCHAR), 2, '0') AS region,
                     random() < 0.2 AS smoker
              FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)""")
    return path


def visits(path: Path, people: int, rows: int) -> Path:
    """Several rows a person, in no order of persons."""
    duckdb.sql(f"""
        COPY (SELECT CAST(hash(i) % {people} AS BIGINT) AS person, CAST(floor(random() * 100) AS INTEGER) AS age,
                     random() * 180000 AS income,
                     'r' || lpad(CAST(CAST(floor(random() * 50) AS INTEGER) AS VARCHAR), 2, '0') AS region
              FROM range({people * rows}) t(i)) TO '{path}' (FORMAT parquet)""")
    return path


def people(path: Path, number: int) -> Path:
    """One row a person, beside their visits."""
    duckdb.sql(f"""
        COPY (SELECT CAST(i AS BIGINT) AS person, CASE WHEN random() < 0.5 THEN 'f' ELSE 'm' END AS sex,
                     CAST(1920 + floor(random() * 100) AS INTEGER) AS born
              FROM range({number}) t(i)) TO '{path}' (FORMAT parquet)""")
    return path


def matrix(path: Path, rows: int, width: int) -> Path:
    """Numbers from -1 to 1 in many columns."""
    columns = ", ".join(f"2 * random() - 1 AS x{j}" for j in range(width))
    duckdb.sql(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT parquet)")
    return path
