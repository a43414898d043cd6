"""Public choices: the same for everybody, others for another occasion."""

from __future__ import annotations

from sulq.learn.noisy_sums import public


def test_public_choices_can_be_made_again() -> None:
    """A second generator gives the same numbers; one about something else does not."""
    first = public().random(8).tolist()
    assert public().random(8).tolist() == first
    assert public(1).random(8).tolist() != first
    assert public(1).random(8).tolist() != public(2).random(8).tolist()
