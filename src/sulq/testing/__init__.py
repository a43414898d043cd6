"""Oracles and harnesses for tests: exact answers of made-up data, record and replay, bad mechanisms."""

from __future__ import annotations

from sulq.testing.exact import exact

__all__ = ["exact"]
