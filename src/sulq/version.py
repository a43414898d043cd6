"""The version of sulq, said once (SemVer)."""

from __future__ import annotations

__version__ = "0.2.0"
