"""The old address of `sulq.api.database`, kept for one version."""

from sulq.api.database import Database

__all__ = ["Database"]
