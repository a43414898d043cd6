"""mbi: one model fitted to all pairs, each measured with an even share of epsilon; its own default fit."""

import importlib.metadata
import itertools

import numpy as np
import pandas as pd
from loop import serve


def prepare(told):
    """The true pairs, and the fit to noisy ones."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi

    frame = pd.read_csv(told["path"])
    names, sizes = list(frame.columns), told["sizes"]
    pairs = list(itertools.combinations(names, 2))
    truth = {pair: pd.crosstab(frame[pair[0]], frame[pair[1]]).to_numpy() for pair in pairs}
    scale = len(pairs) / told["epsilon"]
    rng, domain = np.random.default_rng(), mbi.Domain(names, sizes)

    def run():
        noisy = {pair: own.ravel() + rng.laplace(0, scale, own.size) for pair, own in truth.items()}
        seen = [mbi.LinearMeasurement(values, pair, stddev=scale * 2**0.5) for pair, values in noisy.items()]
        model = mbi.estimation.MirrorDescent().estimate(domain, seen)
        found = {pair: np.asarray(model.project(pair).values) for pair in pairs}
        return lambda: [float(np.mean([np.abs(found[p] - truth[p]).sum() for p in pairs])) / len(frame)]

    return run, importlib.metadata.version("mbi"), "noise by NumPy; counting the rows is not timed"


if __name__ == "__main__":
    serve(prepare)
