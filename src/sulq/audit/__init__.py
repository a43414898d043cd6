"""The auditor: what the guarantee means, exact checks of it, and attacks that must fail.

May be imported: the names below. ATTACKS is the list that `sulq audit` runs; an attack joins by its name in it.
Never here: anything that an analyst does not see. The auditor has an Oracle and the exact laws of noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sulq.audit.attacks import (
    averaging,
    canaries,
    differencing,
    least_squares,
    linear_program,
    membership,
    one_run_epsilon,
    reconstruct,
    rewording,
    tracker,
)
from sulq.audit.beliefs import (
    Heard,
    Safety,
    Tracker,
    audit_targets,
    confidence,
    enumerated,
    group_epsilon,
    independent,
    learned_rule,
    most_told,
    posterior,
    random_row,
    semantic_shift,
    shift,
    simulate,
    simulation_epsilon,
)
from sulq.audit.brute_force import LargestMove, sensitivity
from sulq.audit.distinguish import Bound, answers, distinguish, lower_bound
from sulq.audit.meaning import Finding, Moved, allowed_by, allowed_chance, moved, report
from sulq.audit.notions import Breach, Isolation, amplification, breach, breach_limit, isolation
from sulq.audit.pmf import exact_epsilon, excess, mixture, noisy, product, renyi, statistical_distance
from sulq.audit.promise import (
    Rate,
    divergence,
    expected_step,
    gaussian_walks,
    largest_step,
    rate,
    shift_chance,
    theorem4_terms,
    verify,
    walk_bound,
)
from sulq.audit.statistics import Fit, binomial_interval, fit
from sulq.language.sampling import Perturbation, SamplingReport, perturbation, sampling_report
from sulq.language.sublinear import conf, inv_conf
from sulq.language.theorems import azuma

__all__ = [
    "ATTACKS",
    "Bound",
    "Breach",
    "Finding",
    "Fit",
    "Heard",
    "Isolation",
    "LargestMove",
    "Moved",
    "Perturbation",
    "Rate",
    "Safety",
    "SamplingReport",
    "Tracker",
    "allowed_by",
    "allowed_chance",
    "amplification",
    "answers",
    "audit_targets",
    "averaging",
    "azuma",
    "binomial_interval",
    "breach",
    "breach_limit",
    "canaries",
    "conf",
    "confidence",
    "differencing",
    "distinguish",
    "divergence",
    "enumerated",
    "exact_epsilon",
    "excess",
    "expected_step",
    "fit",
    "gaussian_walks",
    "group_epsilon",
    "independent",
    "inv_conf",
    "isolation",
    "largest_step",
    "learned_rule",
    "least_squares",
    "linear_program",
    "lower_bound",
    "membership",
    "mixture",
    "most_told",
    "moved",
    "noisy",
    "one_run_epsilon",
    "perturbation",
    "posterior",
    "product",
    "random_row",
    "rate",
    "reconstruct",
    "renyi",
    "report",
    "rewording",
    "sampling_report",
    "semantic_shift",
    "sensitivity",
    "shift",
    "shift_chance",
    "simulate",
    "simulation_epsilon",
    "statistical_distance",
    "theorem4_terms",
    "tracker",
    "verify",
    "walk_bound",
]

ATTACKS: Final[tuple[Callable[..., Finding], ...]] = (
    reconstruct,
    differencing,
    tracker,
    averaging,
    membership,
    canaries,
)
