"""The list of threats: every one this version answers has a test by its number, and a control where sight matters."""

from __future__ import annotations

import pytest

from tools import threats


@pytest.mark.parametrize("number", threats.REACHED)
def test_every_threat_within_reach_has_a_test_that_names_it(number: int) -> None:
    """A test's own name carries the threat's number."""
    assert any(f"_T{number}_" in f"{one.test}_" for one in threats.tests().get(number, ()))


@pytest.mark.parametrize("number", threats.CONTROLLED)
def test_a_test_that_could_be_blind_has_a_control(number: int) -> None:
    """At least one test of the threat says what bad thing it catches."""
    assert any(one.control for one in threats.tests()[number])


def test_the_list_is_whole() -> None:
    """There are 105 threats; those within reach and those with controls are among them, and no test names another."""
    assert len(threats.THREATS) == 105
    assert set(threats.CONTROLLED) <= set(threats.REACHED) <= set(range(1, 106))
    assert set(threats.tests()) <= set(range(1, 106))


def test_bars_and_controls_are_read_off_docstrings() -> None:
    """The page shows what follows the labels, up to the next label."""
    text = "It holds (T1). Bar: 0 of 1e6. Control: float noise. More."
    assert threats._said("Bar", text) == "0 of 1e6"
    assert threats._said("Control", text) == "float noise. More"
    assert threats._said("Bar", "nothing") == ""
