"""A worker that takes columns to reach twice as far as the plan does: it certifies counts and no sums."""

from __future__ import annotations

from dataclasses import replace

from sulq.compile.statements import kept_table
from sulq.service.worker import main

if __name__ == "__main__":
    real = kept_table._table

    def wider(*asked):
        found = real(*asked)
        columns = [(name, replace(c, high=None if c.high is None else 2 * c.high)) for name, c in found.columns]
        return replace(found, columns=tuple(columns))

    kept_table._table = wider
    main.main()
