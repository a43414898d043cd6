"""NumPy and scikit-learn on numbers in memory, without privacy: the limit of what learners ask, and of noise."""

import numpy as np
from loop import Unsupported, serve


def matrix(told):
    """The numbers as one array."""
    import pyarrow.parquet as pq

    table = pq.read_table(told["path"])
    return np.column_stack([table[name].to_numpy() for name in table.column_names])


def covariance(told):
    """X'X."""
    X = matrix(told)

    def run():
        found = X.T @ X
        return lambda: [found[0, 0] / len(X), found[0, 1] / len(X)]

    return run, np.__version__, "float64 in memory, n public"


def rounds(told):
    """One iteration of scikit-learn's Lloyd."""
    import sklearn
    from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense
    from threadpoolctl import threadpool_limits

    X = matrix(told)
    centres = np.asarray(told["centres"])
    ones, labels = np.ones(len(X)), np.full(len(X), -1, dtype=np.int32)

    def run():
        found, sizes, moved = np.zeros_like(centres), np.zeros(len(centres)), np.zeros(len(centres))
        with threadpool_limits(1, user_api="blas"):  # as scikit-learn's own loop has it
            lloyd_iter_chunked_dense(
                X, ones, centres, found, sizes, labels, moved, told["threads"], update_centers=True
            )
        return lambda: sorted(sizes)

    return run, sklearn.__version__, "float64 in memory"


def noise(told):
    """Floating-point noise of a generator that protects nobody, rounded."""
    rng, scale, cells = np.random.default_rng(), told["scale"], told["cells"]
    draw = rng.laplace if told["question"] == "laplace" else rng.normal
    values = np.arange(cells, dtype=np.int64)

    def run():
        found = values + np.rint(draw(0.0, scale, cells)).astype(np.int64)
        return lambda: [cells, float(np.std(found - values))]

    return run, np.__version__, "not secure, not exact: protects nobody"


RUNS = {"covariance": covariance, "k-means round": rounds, "laplace": noise, "gaussian": noise}


def prepare(told):
    """By question."""
    if told["question"] not in RUNS:
        raise Unsupported("not a kernel")
    return RUNS[told["question"]](told)


if __name__ == "__main__":
    serve(prepare)
