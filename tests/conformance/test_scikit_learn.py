"""scikit-learn's own checks of an estimator: those of parameters and of prediction.

Its checks of `fit` hand over arrays, and a fit here takes private columns alone. So each learner is given
a `fit` that opens the arrays as a synthetic table and learns from it without noise; what is
checked is the rest. Left out, and why: checks that a fit refuses missing values (they are no
error here), that weighs rows, or that needs `fit_transform` or `labels_`, which would tell of rows.
"""

from __future__ import annotations

import copyreg
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon
from sulq.learn import LEARNERS
from sulq.learn.base import Learner
from sulq.learn.sq.boolean import BooleanClassifier
from sulq.testing import exact

checks = pytest.importorskip("sklearn.utils.estimator_checks")
PARAMETERS = (
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
)
PREDICTION = (
    "check_dict_unchanged",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_f_contiguous_array_estimator",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_readonly_memmap_input",
)
OF_KIND = {
    "classifier": ("check_decision_proba_consistency", "check_classifiers_classes"),
    "regressor": ("check_regressors_int", "check_regressors_no_decision_function", "check_regressors_train"),
    "unsupervised": (),
}


def on_arrays(learner: type[Learner]) -> type[Learner]:
    """The learner, with a `fit` that takes ordinary arrays."""

    def fit(self: Learner, X: Any, y: Any = None) -> Learner:
        cells = np.asarray(X, dtype=np.float64)
        names = [f"x{i}" for i in range(cells.shape[1])]
        frame = pd.DataFrame(cells, columns=names)
        columns: dict[str, object] = {name: bounds(frame[name].to_numpy()) for name in names}
        if learner.kind != "unsupervised":
            label = np.asarray(y)
            frame["y"] = label
            classes = tuple(sorted({value.item() if isinstance(value, np.generic) else value for value in label}))
            columns["y"] = sulq.Category(classes) if learner.kind == "classifier" else bounds(label)
        db = exact(
            sulq.connect(frame, table="t", columns=columns, budget=Epsilon(1000), engine="memory", synthetic=True)
        )
        return learner.fit(self, db[names], db["y"] if "y" in columns else None, spend=Epsilon(100))

    made = type(learner.__name__, (learner,), {"fit": fit})
    copyreg.pickle(made, lambda model: (_again, (learner.__name__, vars(model))))  # a class made here has no address
    return made


def _again(name: str, held: dict[str, object]) -> Learner:
    model = ON_ARRAYS[name].__new__(ON_ARRAYS[name])
    vars(model).update(held)
    return model


def bounds(values: np.ndarray[Any, Any]) -> sulq.Real:
    """A column's bounds, as a test may take them from the data."""
    return sulq.Real(float(np.floor(values.min())), float(np.ceil(values.max())) + 1)


ON_ARRAYS = {learner.__name__: on_arrays(learner) for learner in LEARNERS}
CASES = [
    (learner.__name__, name)
    for learner in LEARNERS
    for name in (
        *PARAMETERS,
        # Truth values are not what scikit-learn's checks hand over.
        *(() if issubclass(learner, BooleanClassifier) else (*PREDICTION, *OF_KIND[learner.kind])),
        *(("check_transformers_unfitted",) if hasattr(learner, "transform") else ()),
    )
]


@pytest.mark.filterwarnings("ignore")  # about scikit-learn's own base class, which is not needed
@pytest.mark.parametrize(("learner", "name"), CASES)
def test_scikit_learn_accepts_it(learner: str, name: str) -> None:
    """Parameters, and prediction on ordinary arrays, behave as scikit-learn's own estimators do."""
    getattr(checks, name)(learner, ON_ARRAYS[learner]())


@pytest.mark.filterwarnings("ignore")
def test_control_a_model_that_predicts_by_the_order_of_rows_is_found() -> None:
    """The checks can fail: a prediction that depends on which rows come together is refused."""

    class Careless(ON_ARRAYS["LinearRegression"]):  # type: ignore[misc]
        def predict(self, X: object) -> object:
            found = super().predict(X)
            return found - found.mean()

    with pytest.raises(AssertionError):
        checks.check_methods_subset_invariance("Careless", Careless())
