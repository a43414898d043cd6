"""Private handles on columns: names, domain and the Oracle behind them; never rows."""

from __future__ import annotations

from dataclasses import dataclass

from sulq.terms.domain import Column
from sulq.terms.oracle import Oracle
from sulq.terms.rowfn import Col


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Some declared columns of a database, as learners take them: X or y."""

    names: tuple[str, ...]
    oracle: Oracle

    def __post_init__(self) -> None:
        schema = self.oracle.facts.schema  # read once: at a far curator each reading is a call
        for fn in self.row:
            fn.kind(schema)  # refuses what is not declared, naming what is

    @property
    def domain(self) -> tuple[Column, ...]:
        """The columns' declared domains."""
        schema = self.oracle.facts.schema
        found = [schema.find(name) for name in self.names]
        return tuple(column for column in found if column is not None)

    @property
    def row(self) -> tuple[Col, ...]:
        """The columns as row functions."""
        return tuple(Col(name) for name in self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Columns({', '.join(self.names)} of {self.oracle.facts.table}; private)"
