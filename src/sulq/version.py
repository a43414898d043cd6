"""The version of sulq, said once (SemVer), and what noise comes from."""

from __future__ import annotations

from importlib import metadata

__version__ = "0.2.0"


def noise_versions() -> tuple[tuple[str, str], ...]:
    """What the noise of an answer comes from, for the events in the ledger (SR3)."""
    return ("numpy", metadata.version("numpy")), ("sulq", __version__)
