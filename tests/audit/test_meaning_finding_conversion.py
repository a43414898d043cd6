"""A zero-concentrated loss read as an epsilon: the inverse of the kernel's conversion."""

from __future__ import annotations

import math

import pytest
from dp_accounting.rdp import rdp_privacy_accountant as rdp

from sulq.audit.meaning import epsilon_of
from sulq.kernel.facts import rho_within


@pytest.mark.parametrize(("rho", "delta"), [(0.001, 1e-6), (0.05, 1e-6), (0.5, 1e-9), (3, 1e-5)])
def test_epsilon_of_is_the_inverse(rho, delta):
    """epsilon_of gives the smallest epsilon that admits rho, as an independent accountant does over its orders."""
    epsilon = epsilon_of(rho, delta)
    assert rho_within(epsilon, delta) >= rho
    assert rho_within(epsilon * (1 - 1e-9), delta) < rho
    orders = [1 + math.exp(x / 50) for x in range(-200, 500)]
    theirs, _ = rdp.compute_epsilon(orders, [rho * a for a in orders], delta)
    assert epsilon == pytest.approx(theirs, rel=1e-3)
    assert epsilon <= theirs * (1 + 1e-9)
    assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))
