"""What others make of all 2-way marginals, each run in a process of its own; prints a JSON line a run.

    python -m benchmarks.release_peers PEER TABLE.csv SIZES RHO EPSILON DELTA RUNS

TABLE has codes from 0, SIZES (JSON) the public number of each column's values. Needs nothing of sulq, so that
an environment of the peer's own can run it. Each line: {"errors": mean L1 of a marginal / n, "seconds"}.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import sys
import time
import warnings

import numpy as np
import pandas as pd

ITERATIONS = 1000  # mbi's own default; more of them fit the noise


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


PEERS = {"mbi": mbi, "opendp": opendp, "smartnoise": smartnoise}
PACKAGES = {"mbi": "mbi", "opendp": "opendp", "smartnoise": "smartnoise-synth"}


def main() -> None:
    """So many runs of one peer."""
    warnings.simplefilter("ignore")
    name, path, sizes, rho, epsilon, delta, runs = sys.argv[1:]
    frame, own = pd.read_csv(path), {str(column): int(size) for column, size in json.loads(sizes).items()}
    print(json.dumps({"version": importlib.metadata.version(PACKAGES[name])}), flush=True)
    for _ in range(int(runs)):
        start = time.monotonic()
        found = PEERS[name](frame, own, rho=float(rho), epsilon=float(epsilon), delta=float(delta))
        far = np.mean([np.abs(values - counts(frame, pair, own)).sum() for pair, values in found.items()]) / len(frame)
        print(json.dumps({"error": float(far), "seconds": time.monotonic() - start}), flush=True)


if __name__ == "__main__":
    main()
