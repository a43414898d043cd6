"""Requests are plain values, and say nothing of how far anybody moves a sum (SR5)."""

from __future__ import annotations

import contextlib
import dataclasses
from fractions import Fraction

import pytest

from sulq.kernel import request
from sulq.kernel.facts import Event, Refused
from sulq.kernel.request import Key, Outside, Part, Release, Scan
from sulq.kernel.run import Kernel


def test_no_field_states_a_sensitivity_SR5() -> None:
    """Of what is certified; what stands outside is bounded by the rules of plans, and says so in its own class."""
    kinds = [
        each
        for each in vars(request).values()
        if dataclasses.is_dataclass(each) and each.__module__ == request.__name__
    ]
    assert len(kinds) > 8
    for kind in kinds:
        names = {field.name for field in dataclasses.fields(kind)}
        assert not names & {"sensitivity", "moves", "norm", "rows", "single", "pair", "epsilon", "rho"}, kind
        assert ("bounds" in names) <= (kind.__name__ == "Outside"), kind


def test_texts_are_bound_by_their_places_and_cells_are_all_combinations() -> None:
    """text0, text1; without a key there is one cell."""
    assert Scan("SELECT 1", ("a", "b")).bound == {"text0": "a", "text1": "b"}
    assert Part((Key(0, 3), Key(1, 4)), 2, None).cells == 12
    assert Part((), 0, None).cells == 1


def test_groups_are_said_by_a_truth_alone() -> None:
    """A number that is less than nothing would count against the other kinds of a release. Control: False is none."""
    kernel, event = Kernel(lambda *_: True, lambda: None), Event(None, Fraction(1))
    outside = Outside(list, 0, 1, (), groups=Fraction(-7), whole=object())
    for source, answered in ((outside, False), (dataclasses.replace(outside, groups=False), True)):
        with contextlib.nullcontext() if answered else pytest.raises(Refused, match="kinds"):
            kernel.check([Release(source, (), ())], event)
