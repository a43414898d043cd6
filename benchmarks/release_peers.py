"""What others make of all 2-way marginals, each run in a process of its own; prints a JSON line a run.

    python -m benchmarks.release_peers PEER TABLE.csv SIZES RHO EPSILON DELTA RUNS

TABLE has codes from 0, SIZES (JSON) the public number of each column's values. Needs nothing of sulq, so that
an environment of the peer's own can run it. Each line: {"error": mean L1 of a marginal / n, "seconds", "computing"}, by
the clock and of the processor.
"""

from __future__ import annotations

import functools
import importlib.metadata
import itertools
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ITERATIONS = 1000  # mbi's own default; more of them fit the noise
STOPPED = 1e-5  # of a fit within AIM: it ends where 50 iterations lower the loss by less than this part, twice
MAX_MAPS = 20_000  # memory maps of a process, of 65,530 that Linux allows: each compiled program takes some for good
MEGABYTES = 80.0  # of an AIM's model, as ours and OpenDP's have it


def counts(frame: pd.DataFrame, pair: tuple[str, str], sizes: dict[str, int]) -> np.ndarray:
    """A marginal of rows by two columns."""
    table = np.zeros((sizes[pair[0]], sizes[pair[1]]))
    np.add.at(table, (frame[pair[0]].to_numpy(), frame[pair[1]].to_numpy()), 1)
    return table


def mbi(frame: pd.DataFrame, sizes: dict[str, int], rho: float, **_loss: float) -> dict[tuple[str, str], np.ndarray]:
    """One model fitted to all of them, each measured with Gaussian noise, an even part each; the model's marginals."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi as library

    from benchmarks import mbi_oracle

    rng = np.random.default_rng()
    pairs = list(itertools.combinations(sizes, 2))
    deviation = (len(pairs) / (2 * rho)) ** 0.5
    told = []
    for pair in pairs:
        truth = counts(frame, pair, sizes).ravel()
        told.append(library.LinearMeasurement(truth + rng.normal(0, deviation, truth.size), pair, stddev=deviation))
    domain = library.Domain(list(sizes), list(sizes.values()))
    oracle = mbi_oracle.oracle(tuple(sizes.values()), 2)
    model = library.estimation.MirrorDescent(marginal_oracle=oracle).estimate(domain, told, iters=ITERATIONS)
    return {pair: np.asarray(model.project(pair).values) for pair in pairs}


def mbi_aim(
    frame: pd.DataFrame, sizes: dict[str, int], rho: float, **_loss: float
) -> dict[tuple[str, str], np.ndarray]:
    """AIM [MMSM22, algorithm 2] with mbi for its model, each fit from the last one; the last model's marginals.

    mbi itself has no AIM, and OpenDP 0.16's names a function that mbi 2.0 does not have any more. A fit between two
    rounds ends where it has converged, the last one after mbi's own number of iterations. Prints a line each round.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi as library
    from mbi.junction_tree import hypothetical_model_size

    rng, domain = np.random.default_rng(), library.Domain(list(sizes), list(sizes.values()))
    pairs = list(itertools.combinations(sizes, 2))
    alone = [(name,) for name in sizes]
    truth = {own: np.bincount(_codes(frame, own, sizes), minlength=domain.size(own)) for own in (*alone, *pairs)}
    weights = {own: sum(len({*own} & {*pair}) for pair in pairs) for own in truth}
    told, part, spent = [], rho / (16 * len(sizes)), 0.0

    def measure(own: tuple[str, ...], deviation: float) -> None:
        values = truth[own] + rng.normal(0, deviation, len(truth[own]))
        told.append(library.LinearMeasurement(values, own, stddev=deviation))

    for own in alone:
        measure(own, (1 / (1.8 * part)) ** 0.5)
        spent += 0.9 * part
    fit = functools.partial(library.estimation.MirrorDescent().estimate, domain, told, iters=ITERATIONS)
    model, rounds = fit(tol=STOPPED), 0
    while spent < rho * (1 - 1e-9):
        part = rho - spent if rho - spent < 2 * part else part
        deviation, epsilon = (1 / (1.8 * part)) ** 0.5, (0.8 * part) ** 0.5
        most, held = MEGABYTES * (spent + part) / rho, [each.clique for each in told]
        clock = [time.process_time()]
        free = {own for clique in held for k in (1, 2) for own in itertools.combinations(clique, k)}
        open_to = [own for own in truth if own in free or hypothetical_model_size(domain, [*held, own]) <= most]
        expected = {own: projected(model, own).ravel() for own in open_to}
        clock.append(time.process_time())
        off = (2 / np.pi) ** 0.5 * deviation
        gains = [weights[o] * (np.abs(truth[o] - expected[o]).sum() - off * truth[o].size) for o in open_to]
        scores = 0.5 * epsilon / max(weights.values()) * np.array(gains) + rng.gumbel(size=len(gains))
        own = open_to[int(np.argmax(scores))]
        measure(own, deviation)
        spent += part
        last = spent >= rho * (1 - 1e-9)
        model = fit(warm_start=model, tol=None if last else STOPPED)
        moved = np.abs(np.asarray(model.project(own).values).ravel() - expected[own]).sum()
        part *= 4 if moved <= off * truth[own].size else 1
        rounds += 1
        ROUNDS.append(rounds)
        clock.append(time.process_time())
        took = {"projecting": clock[1] - clock[0], "fitting": clock[2] - clock[1], "computing": clock[2]}
        print(json.dumps({"round": rounds, "spent": spent / rho, **took}), flush=True)
        if len(Path("/proc/self/maps").read_bytes().splitlines()) > MAX_MAPS:
            jax.clear_caches()
    return {pair: np.asarray(model.project(pair).values) for pair in pairs}


def projected(model: Any, own: tuple[str, ...]) -> np.ndarray:
    """A fitted model's marginal by some columns: what `model.project` gives, in NumPy.

    mbi works such a marginal out by programs of JAX that are compiled anew for each shape: 50 s of a round.
    """
    if model.marginals.supports(own):
        return np.asarray(model.project(own).values)
    sizes = dict(zip(model.domain.attributes, model.domain.shape, strict=True))
    tables = [(tuple(clique), np.asarray(model.potentials[clique].values)) for clique in model.potentials.cliques]
    left = {name for names, _ in tables for name in names} - {*own}
    while left:
        met = {name: {n for names, _ in tables if name in names for n in names} for name in left}
        name = min(left, key=lambda each: np.prod([sizes[n] for n in met[each]]))
        names, table = _multiplied([each for each in tables if name in each[0]], sizes)
        axis = names.index(name)
        most = table.max(axis=axis, keepdims=True)
        rest = np.log(np.exp(table - most).sum(axis=axis)) + most.squeeze(axis)
        tables = [each for each in tables if name not in each[0]] + [((*names[:axis], *names[axis + 1 :]), rest)]
        left.remove(name)
    names, table = _multiplied([*tables, (own, np.zeros([sizes[n] for n in own]))], sizes)
    whole = np.exp(table - table.max()).transpose([names.index(n) for n in own])
    return whole * (float(model.total) / whole.sum())


def _multiplied(
    tables: list[tuple[tuple[str, ...], np.ndarray]], sizes: dict[str, int]
) -> tuple[tuple[str, ...], np.ndarray]:
    """The sum of tables of logarithms over all their columns."""
    names = tuple(dict.fromkeys(name for own, _ in tables for name in own))
    found = np.zeros([sizes[name] for name in names])
    for own, table in tables:
        order = sorted(range(len(own)), key=lambda i: names.index(own[i]))
        found += table.transpose(order).reshape([sizes[name] if name in own else 1 for name in names])
    return names, found


def _codes(frame: pd.DataFrame, own: tuple[str, ...], sizes: dict[str, int]) -> np.ndarray:
    return np.ravel_multi_index([frame[name].to_numpy() for name in own], [sizes[name] for name in own])


def opendp(frame: pd.DataFrame, sizes: dict[str, int], rho: float, **_loss: float) -> dict[tuple[str, str], np.ndarray]:
    """OpenDP's AIM with all 2-way marginals for its workload; its model's own marginals, without its null cells."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.from_pandas(frame).lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
    )
    keys = {name: list(range(size)) for name, size in sizes.items()}
    table = context.query(rho=rho).contingency_table(keys=keys, algorithm=dp.mbi.AIM(queries=2)).release()
    found = {}
    for pair in itertools.combinations(sizes, 2):
        values = np.asarray(table.project(pair))
        places = [[list(table.keys[name]).index(code) for code in keys[name]] for name in pair]
        found[pair] = values[np.ix_(*places)]
    return found


def smartnoise(
    frame: pd.DataFrame, sizes: dict[str, int], epsilon: float, delta: float, **_loss: float
) -> dict[tuple[str, str], np.ndarray]:
    """SmartNoise's AIM, its rows; values and n are taken from the data, as it does, and cost it nothing."""
    from snsynth import Synthesizer

    maker = Synthesizer.create("aim", epsilon=epsilon, delta=delta, degree=2)
    maker.fit(frame, categorical_columns=list(sizes), preprocessor_eps=0.0)
    made = maker.sample(len(frame)).astype(int)
    return {pair: counts(made, pair, sizes) for pair in itertools.combinations(sizes, 2)}


ROUNDS: list[int] = []  # of an AIM, those that are over
PEERS = {"mbi": mbi, "mbi-aim": mbi_aim, "opendp": opendp, "smartnoise": smartnoise}
PACKAGES = {"mbi": "mbi", "mbi-aim": "mbi", "opendp": "opendp", "smartnoise": "smartnoise-synth"}


def main() -> None:
    """So many runs of one peer."""
    warnings.simplefilter("ignore")
    name, path, sizes, rho, epsilon, delta, runs = sys.argv[1:]
    frame, own = pd.read_csv(path), {str(column): int(size) for column, size in json.loads(sizes).items()}
    print(json.dumps({"version": importlib.metadata.version(PACKAGES[name])}), flush=True)
    for _ in range(int(runs)):
        start, computing = time.monotonic(), time.process_time()
        found = PEERS[name](frame, own, rho=float(rho), epsilon=float(epsilon), delta=float(delta))
        told = {"rounds": ROUNDS[-1]} if ROUNDS else {}
        far = np.mean([np.abs(values - counts(frame, pair, own)).sum() for pair, values in found.items()]) / len(frame)
        took = {"seconds": time.monotonic() - start, "computing": time.process_time() - computing}
        print(json.dumps({"error": float(far), **took, **told}), flush=True)


if __name__ == "__main__":
    main()
