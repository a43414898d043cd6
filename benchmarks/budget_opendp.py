"""The same asks under OpenDP's adaptive compositors, run for real: draw by draw the same noise and sensitivity.

Each way that OpenDP offers keeps to the same (epsilon, delta). What a way has to choose beforehand (the delta of one
ask, the delta for open keys, the part of epsilon for a compositor within) is tried over a grid, and the best counts.
Renyi curves have an odometer, but no filter takes them: `make_privacy_filter` ends the process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import opendp.prelude as dp
from opendp.metrics import l02inf_distance
from opendp.mod import Measurement, OpenDPException

from sulq.kernel.mechanisms import cost_of
from sulq.language.law import GaussianLaw
from sulq.language.privacy import Draw

ROWS = [1, 2, 3]
STEPS = 50  # of bisection
ASK_PARTS = (4, 16, 64, 256)  # delta of an ask that is not pure, under approximate composition
KEY_PARTS = (0.5, 0.2, 0.1, 0.05, 0.02)  # of delta, for open keys
INNER_PARTS = (1 / 12, 1 / 6, 1 / 3, 1 / 2, 2 / 3, 5 / 6)  # of epsilon, for what is not pure

Draws = tuple[Draw, ...]
Loss = tuple[float, float]
Cast = Callable[[Draws], Measurement | None]


def pure(draws: Draws) -> bool:
    """Whether each of them has a pure loss."""
    return all(draw.norm == "l1" for draw in draws)


@functools.cache
def _space() -> tuple[Any, Any]:
    dp.enable_features("contrib", "honest-but-curious")
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def _drawn(draw: Draw) -> Measurement:
    """One draw, of a number that one person moves by 1; the scale is ours over our sensitivity."""
    domain, metric = space = _space()
    moved = float(draw.sensitivity) if draw.norm == "l1" else float(draw.sensitivity) ** 0.5
    scale = float(draw.scale) / moved
    match draw.mechanism:
        case "laplace":
            return space >> dp.t.then_count() >> dp.m.then_laplace(scale)
        case "gaussian":
            return space >> dp.t.then_count() >> dp.m.then_gaussian(scale)
        case "permute_and_flip":
            scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
            counted = dp.t.make_user_transformation(domain, metric, *scores, lambda rows: [len(rows), 0], lambda d: d)
            return counted >> dp.m.then_noisy_max(dp.max_divergence(), 2 * scale)
        case "passed_gaussian":
            count = dp.t.make_count_by(*space, TV=int)
            groups = count.output_domain, l02inf_distance(dp.absolute_distance(T=int))
            counted = dp.t.make_user_transformation(domain, metric, *groups, count, lambda d: (d, d, d))
            # Its noise is not cut off, so the same delta needs a higher threshold; its map charges one higher still.
            tail = min(2 * float(cost_of(draw).key_delta) / draw.alone, 0.5)
            level = GaussianLaw(Fraction(scale)).accuracy(tail) + 1
            return counted >> dp.m.then_gaussian_threshold(scale, threshold=level + 1)
    raise ValueError(draw.mechanism)


@functools.cache
def _pure(draws: Draws) -> Measurement | None:
    found = [_drawn(draw) for draw in draws] if pure(draws) else []
    return dp.c.make_composition(found) if found else None


@functools.cache
def _concentrated(draws: Draws) -> Measurement:
    """All draws of an ask, at their zero-concentrated losses, with the delta of open keys."""
    found = []
    for draw in draws:
        made = _drawn(draw)
        made = dp.c.make_pureDP_to_zCDP(made) if draw.norm == "l1" else made
        found.append(made if draw.mechanism == "passed_gaussian" else dp.c.make_approximate(made))
    return dp.c.make_composition(found)


@functools.cache
def _approximate(draws: Draws, delta: float) -> Measurement:
    """An ask at its pure loss, or at one that a delta of its own buys; the delta of open keys is added."""
    if pure(draws):
        return dp.c.make_approximate(_pure(draws))
    found = _concentrated(draws)
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(found), delta + found.map(1)[1])


def _filter(measure: Any, limit: Any) -> Measurement:
    return dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*_space(), measure), d_in=1, d_out=limit)


def _concentrated_filter(rho: float, keys: float) -> Measurement:
    return _filter(dp.approximate(dp.zero_concentrated_divergence()), (rho, keys))


def _converted(rho: float, keys: float, delta: float) -> Measurement:
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(_concentrated_filter(rho, keys)), delta)


@functools.cache
def most_rho(epsilon: float, keys: float, delta: float) -> float:
    """The largest rho whose filter OpenDP itself converts to (epsilon, delta)."""
    low, high = 0.0, epsilon
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _converted(middle, keys, delta).map(1)[0] <= epsilon else (low, middle)
    return low


@dataclass
class Compositor:
    """A filter that is running, and how an ask is cast to its measure.

    OpenDP's filter answers nothing more once it refused; `careful` adds the losses up and does not ask what it would
    refuse, which is how an ask is skipped.
    """

    queryable: Callable[[Measurement], object]
    limit: Loss
    cast: Cast
    careful: bool
    spent: Loss = (0.0, 0.0)

    def ask(self, draws: Draws) -> bool:
        """Whether OpenDP answers."""
        asked = self.cast(draws)
        if asked is None:
            return False
        loss = asked.map(1)
        loss = loss if isinstance(loss, tuple) else (loss, 0.0)
        after = (self.spent[0] + loss[0], self.spent[1] + loss[1])
        if self.careful and any(total > most for total, most in zip(after, self.limit, strict=True)):
            return False
        try:
            self.queryable(asked)
        except OpenDPException:
            return False
        self.spent = after
        return True


Ask = Callable[[Draws], bool]
Start = Callable[..., Ask]  # careful=True or False


def ways(epsilon: float, delta: float, *, open_keys: bool) -> Iterator[tuple[str, Start]]:
    """Every way to keep to (epsilon, delta), by its name and settings."""
    keyed = [delta * part for part in KEY_PARTS] if open_keys else [0.0]

    yield "max_divergence", functools.partial(_purely, epsilon)
    for part in ASK_PARTS:
        yield f"approximate(max_divergence), delta/{part} an ask", functools.partial(_added, epsilon, delta, part)
    for keys in keyed:
        named = f"approximate(zero_concentrated_divergence), delta {keys:.0e} for keys"
        yield named, functools.partial(_blended, epsilon, delta, keys)
    for part in INNER_PARTS:
        for keys in keyed[::2]:
            named = f"zCDP within approximate(max_divergence), epsilon {epsilon * part:.2f}, delta {keys:.0e} for keys"
            yield named, functools.partial(_nested, epsilon, delta, keys, part)


def _purely(epsilon: float, *, careful: bool) -> Ask:
    running = _filter(dp.max_divergence(), epsilon)(ROWS)
    return Compositor(running, (epsilon, 0.0), _pure, careful).ask


def _added(epsilon: float, delta: float, part: int, *, careful: bool) -> Ask:
    running = _filter(dp.approximate(dp.max_divergence()), (epsilon, delta))(ROWS)
    return Compositor(running, (epsilon, delta), lambda draws: _approximate(draws, delta / part), careful).ask


def _blended(epsilon: float, delta: float, keys: float, *, careful: bool) -> Ask:
    limit = (most_rho(epsilon, keys, delta), keys)
    return Compositor(_concentrated_filter(*limit)(ROWS), limit, _concentrated, careful).ask


def _nested(epsilon: float, delta: float, keys: float, part: float, *, careful: bool) -> Ask:
    """Pure asks are added; for all others a part of epsilon, and all of delta, goes to a compositor within."""
    outer = _filter(dp.approximate(dp.max_divergence()), (epsilon, delta))(ROWS)
    limit = (most_rho(epsilon * part, keys, delta), keys)
    within = _converted(*limit, delta)
    inner = Compositor(outer(within), limit, _concentrated, careful)
    added = Compositor(outer, (epsilon, delta), lambda draws: _approximate(draws, 0.0), careful, within.map(1))
    return lambda draws: added.ask(draws) if pure(draws) else inner.ask(draws)


def fixed(epsilon: float, delta: float, keys: float, *, careful: bool) -> Ask:
    """What a user sets who does not know what will be asked: zero-concentrated losses, and a delta for open keys."""
    return _blended(epsilon, delta, keys, careful=careful)


def best(
    counted: Callable[[Ask], int], epsilon: float, delta: float, *, open_keys: bool, careful: bool
) -> Sequence[tuple[int, str]]:
    """What each kind of way admits at its best setting, most first."""
    found: dict[str, tuple[int, str]] = {}
    for name, start in ways(epsilon, delta, open_keys=open_keys):
        kind = name.partition(",")[0]
        found[kind] = max(found.get(kind, (-1, "")), (counted(start(careful=careful)), name))
    return sorted(found.values(), reverse=True)
