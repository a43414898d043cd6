"""Choices that must fall somehow: where centres begin, how ties are broken. Public, repeatable, and hiding nobody.

What protects people is drawn by the mechanisms, from the operating system's generator and nowhere else (T66).
"""

from __future__ import annotations

from typing import Final

import numpy as np

Chance = np.random.Generator
BEGINNING: Final = 20_050_613


def public(*about: int) -> Chance:
    """The same choices for everybody; others where `about`, a turn or a released number, is another."""
    return np.random.default_rng((BEGINNING, *about))
