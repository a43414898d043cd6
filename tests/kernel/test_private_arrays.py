"""Types of arrays: one home, and numbers that are what they are called."""

from __future__ import annotations

import typing

import numpy as np

from sulq.kernel import private
from sulq.language import kinds


def test_the_vocabulary_names_the_kernels_own_types() -> None:
    """A type of array is defined once; its numbers have 64 bits."""
    for name, number in {"Floats": np.float64, "Integers": np.int64, "Truths": np.bool_, "Objects": np.object_}.items():
        assert getattr(kinds, name) is getattr(private, name)
        assert typing.get_args(typing.get_args(getattr(private, name))[1]) == (number,)
