"""Oracles and harnesses for tests and audits: exact answers of made-up data, neighbours, record and replay.

May be imported: everything below the database, for made-up data alone. Never here: a way to private data without noise
(SR9), or what tests alone use.
"""

from __future__ import annotations

from sulq.testing.exact import exact

__all__ = ["exact"]
