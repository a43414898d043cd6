"""ID3: the textbook's tree without noise, the paper's queries under its budget, and useful trees at a price."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, learn
from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.api.database import Database
from sulq.language.question import Choose, Sums, Together
from sulq.learn import ID3
from sulq.learn.features import Attributes, Labels
from sulq.learn.trees.growth import EntropyGrowth, SplitRule
from sulq.learn.trees.tree import Tree
from tests.learn.cases import adult, exact, opened, refused

NOISELESS = Epsilon(900)  # on the exact oracle: so that no rule finds a count too small
ZERO_OUT = sulq.Unit(neighbors="zero_out")


def categorical(seed: int, rows: int = 400, attributes: int = 4, t: int = 3) -> tuple[dict, dict]:
    """Columns and data: a label that depends on all attributes, and on chance."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, t, (rows, attributes))
    weights = rng.normal(size=(attributes, t))
    worth = sum(weights[i][X[:, i]] for i in range(attributes)) + rng.normal(0, 0.7, rows)
    label = np.digitize(worth, np.quantile(worth, [0.4, 0.75]))
    names = [f"A{i}" for i in range(attributes)]
    values = [str(i) for i in range(t)]
    columns = dict.fromkeys(names, values) | {"L": values}
    data = {name: [values[v] for v in X[:, i]] for i, name in enumerate(names)}
    return columns, data | {"L": [values[v] for v in label]}


def textbook(codes: np.ndarray, label: np.ndarray, sizes: list[int], depth: int) -> object:
    """ID3 by its definition: ('leaf', its classes of most rows) or (attribute, children); apart from the package."""
    present, many = np.unique(label, return_counts=True)
    if len(present) <= 1 or depth == 0 or not any(sizes):
        return ("leaf", {str(value) for value in present[many == many.max(initial=0)]})

    def rest(i: int) -> float:
        total = 0.0
        for value in range(sizes[i]):
            here = label[codes[:, i] == value]
            p = np.unique(here, return_counts=True)[1] / max(len(here), 1)
            total -= len(here) / len(label) * float((p * np.log(p)).sum())
        return total

    best = min((i for i in range(len(sizes)) if sizes[i]), key=rest)
    left = [0 if i == best else size for i, size in enumerate(sizes)]
    parts = [codes[:, best] == value for value in range(sizes[best])]
    return (best, [textbook(codes[part], label[part], left, depth - 1) for part in parts])


def walk(tree: object, row: np.ndarray) -> set[str]:
    while tree[0] != "leaf":
        tree = tree[1][row[tree[0]]]
    return tree[1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_without_noise_it_is_the_textbooks_tree_S0_17(seed: int, depth: int) -> None:
    """On every row of the data, multiway ID3 predicts what an independent implementation does (S0.18).

    So does the default, whose noise rules vanish with the noise.
    """
    columns, data = categorical(seed)
    names = [name for name in columns if name != "L"]
    codes = np.array([[int(v) for v in data[name]] for name in names]).T
    label = np.array([int(v) for v in data["L"]])
    reference = textbook(codes, label, [3] * len(names), depth)
    expected = [walk(reference, row) for row in codes]
    with opened(columns, data) as db:
        plain = exact(db)
        for model in (ID3(max_depth=depth, splits="multiway"), ID3(max_depth=depth)):
            model.fit(plain[names], plain["L"], spend=NOISELESS)
            assert model.criterion_ == "entropy"
            found = model.predict(pd.DataFrame(data)[names])
            assert all(label in classes for label, classes in zip(found, expected, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_binary_splits_are_scikit_learns_entropy_tree(seed: int) -> None:
    """Thresholds of numbers and one category or not, on the same cells: the same predictions at every depth."""
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(seed)
    n = 3000
    data = {"x": rng.integers(0, 16, n), "z": rng.integers(0, 12, n), "c": rng.choice(["a", "b", "c"], n)}
    worth = data["x"] + 3.1 * np.sin(data["z"]) + np.where(data["c"] == "b", 4.7, 0) + rng.normal(0, 2, n)
    data["y"] = worth > 9
    X = np.column_stack([data["x"], data["z"], *(data["c"] == value for value in "abc")])
    columns = {"x": sulq.Int(0, 15), "z": sulq.Int(0, 11), "c": ["a", "b", "c"], "y": sulq.Bool()}
    with opened(columns, data) as db:
        plain = exact(db)
        for depth in (1, 2, 3, 5):
            theirs = tree.DecisionTreeClassifier(criterion="entropy", max_depth=depth, random_state=0)
            theirs.fit(X, data["y"])
            ours = ID3(max_depth=depth, criterion="entropy", splits="binary")
            ours.fit(plain[["x", "z", "c"]], plain["y"], spend=NOISELESS)
            assert (ours.predict(pd.DataFrame(data)) == theirs.predict(X)).mean() > 0.999


def test_one_attribute_left_still_divides_E16() -> None:
    """Read literally, "A contains only A_1" stops one division early: A_1 is the label, not an attribute."""
    columns, data = {"A": ["0", "1"], "L": ["0", "1"]}, {"A": ["0", "1"] * 50, "L": ["0", "1"] * 50}
    with opened(columns, data) as db:
        plain = exact(db)
        model = ID3(splits="multiway").fit(plain[["A"]], plain["L"], spend=NOISELESS)
        assert model.get_depth() == 1
        assert model.predict([["0"], ["1"]]).tolist() == ["0", "1"]
    columns, data = categorical(1, attributes=2)
    with opened(columns, data) as db:
        plain = exact(db)
        model = ID3(splits="multiway", max_depth=9).fit(plain[["A0", "A1"]], plain["L"], spend=NOISELESS)
        assert model.get_depth() == 2


def test_queries_under_the_papers_budget_S0_18() -> None:
    """A leaf costs 1 + t queries, an inner node of a attributes 1 + t + a(t + t^2); t = 3, a = 8: 100."""
    columns, data = categorical(3, rows=3000, attributes=8)
    names = [name for name in columns if name != "L"]
    with opened(columns, data, SubLinear(1000, 1e-6, 1000), unit=ZERO_OUT) as db:
        one = ID3(max_depth=1).fit(db[names], db["L"])
        assert one.spent_ == sulq.Queries(100 + 3 * 4)
        two = ID3(max_depth=2).fit(db[names], db["L"])
        nodes = two.tree_.nodes
        inner = [node for node in nodes if not node.leaf]
        price = sum(1 + 3 + (8 - node.depth) * (3 + 9) for node in inner) + 4 * (len(nodes) - len(inner))
        assert two.spent_ == sulq.Queries(price)
        assert two.guarantee_ == "posterior"
        assert one.criterion_ == "entropy"
        # With so little noise the paper's queries find the textbook's root.
        codes = np.array([[int(v) for v in data[name]] for name in names]).T
        reference = textbook(codes, np.array([int(v) for v in data["L"]]), [3] * 8, 2)
        assert one.tree_.nodes[0].attribute == reference[0]


def test_too_few_queries_make_leaves_S0_18() -> None:
    """The root needs 1 + t, or nothing is asked; a node that cannot be divided is a leaf."""
    columns, data = categorical(3, attributes=8)
    names = [name for name in columns if name != "L"]
    for queries, depth in ((99, 0), (100, 1), (111, 1), (112, 1), (300, 2)):
        with opened(columns, data, SubLinear(1000, 1e-6, queries), unit=ZERO_OUT) as db:
            model = ID3(max_depth=3).fit(db[names], db["L"])
            assert model.spent_.queries <= queries
            assert model.get_depth() == depth
            assert np.isfinite(model.predict_proba([["0"] * 8])).all()
    with opened(columns, data, SubLinear(1000, 1e-6, 3), unit=ZERO_OUT) as db:
        refused("budget-exceeded", ID3().fit, db[names], db["L"])
        refused("bad-parameter", ID3(criterion="separation").fit, db[names], db["L"])
        assert db.spent == sulq.Queries(0)


def test_a_node_below_the_threshold_is_a_leaf_S0_18() -> None:
    """Nothing is divided that has fewer rows than gamma noise magnitudes; control: without a tolerance it is."""
    columns, data = categorical(5, rows=4000)
    names = [name for name in columns if name != "L"]
    with opened(columns, data, SubLinear(100, 1e-6, 5000), unit=ZERO_OUT) as db:
        strict = ID3(tolerance=0.5).fit(db[names], db["L"])
        plain = ID3().fit(db[names], db["L"])
    deviation = math.sqrt(strict.tree_.nodes[0].variance)
    x = 9 / 0.5
    threshold = x * math.log(x) * math.sqrt(2 * math.log(1 / 0.05)) * deviation
    divided = [node for node in strict.tree_.nodes if not node.leaf]
    assert divided
    assert all(node.counts.sum() > threshold - 12 * deviation for node in divided)
    small = [node for node in plain.tree_.nodes if not node.leaf and node.counts.sum() < threshold / 2]
    assert small
    assert plain.get_n_leaves() > strict.get_n_leaves()


def test_a_concept_that_is_one_attribute_is_learned_whole_S0_18() -> None:
    """Label = A1: predicted for every row, at epsilon 1 with noise, by choices, tables and the paper's queries."""
    rng = np.random.default_rng(6)
    data = {name: rng.choice(["0", "1", "2"], 30_000).tolist() for name in ("A0", "A1", "A2")}
    columns = {name: ["0", "1", "2"] for name in (*data, "L")}
    data["L"] = data["A1"]
    frame = pd.DataFrame(data)
    with opened(columns, data) as db:
        for criterion in ("auto", "separation", "entropy"):
            model = ID3(max_depth=3, criterion=criterion).fit(db[["A0", "A1", "A2"]], db["L"], spend=Epsilon(1))
            assert model.score(frame, frame["L"]) == 1
            assert np.argmax(model.feature_importances_) == 1
    with opened(columns, data, SubLinear(1, 1e-6, 2000), unit=ZERO_OUT) as db:
        model = ID3(max_depth=2).fit(db[["A0", "A1", "A2"]], db["L"])
        assert model.score(frame, frame["L"]) == 1


class Watch:
    """An Oracle that remembers what it was asked."""

    def __init__(self, oracle: object) -> None:
        self.oracle, self.asked = oracle, []

    @property
    def facts(self) -> object:
        return self.oracle.facts

    def foresee(self, question: object, *, spend: object = None) -> object:
        return self.oracle.foresee(question, spend=spend)

    def ask(self, question: object, *, spend: object = None, **more: object) -> object:
        self.asked.append((question, spend, self.oracle.foresee(question, spend=spend)))
        return self.oracle.ask(question, spend=spend, **more)


def watched(db: Database, model: ID3, names: list[str], spend: object) -> list[tuple]:
    watch = Watch(db._oracle)
    columns = [ColumnChoice(tuple(some), watch) for some in (names, ["L"])]
    model.fit(*columns, spend=spend)
    return watch.asked


@pytest.mark.parametrize(("spend", "norm"), [(Epsilon(10), "l1"), (Rho(10), "l2")])
def test_a_level_costs_its_attributes_whatever_its_nodes(spend: object, norm: str) -> None:
    """One Together a level: its loss is a tables' in L1, sqrt(a) tables' in L2; nodes add nothing (SPEC section 6)."""
    columns, data = categorical(7, rows=5000)
    names = [name for name in columns if name != "L"]
    with opened(columns, data, EpsilonDelta(900, 1e-6)) as db:
        asked = watched(db, ID3(max_depth=3, splits="multiway"), names, spend)
    levels = [(question, price, plan) for question, price, plan in asked if isinstance(question, Together)]
    assert len(levels) == 3
    nodes = [plan.parts[0].tally.cells // 9 for _, _, plan in levels]
    assert nodes[0] == 1 < nodes[1] < nodes[2]
    for question, price, plan in levels:
        a = len(question.questions)
        assert a == 4 - levels.index((question, price, plan)) or nodes[0] == 1
        scale = float(plan.parts[0].laws[0].scale)
        alone = math.sqrt(a / (2 * float(price.exact))) if norm == "l2" else a / float(price.exact)
        assert scale == pytest.approx(alone, rel=1e-3)
        assert all(part.laws == plan.parts[0].laws for part in plan.parts)


def test_a_choice_costs_one_whatever_its_attributes() -> None:
    """The scale of a level's choice is the same with 2 attributes and with 6, with one node and with many (SR5)."""
    for few in (2, 6):
        columns, data = categorical(8, rows=5000, attributes=few)
        names = [name for name in columns if name != "L"]
        with opened(columns, data) as db:
            asked = watched(db, ID3(max_depth=3, criterion="separation"), names, Epsilon(10))
        choices = [(price, plan) for question, price, plan in asked if isinstance(question, Choose)]
        assert len(choices) == 3
        assert choices[2][1].parts[0].cells > choices[0][1].parts[0].cells
        for price, plan in choices:
            assert float(plan.parts[0].laws[0].scale) * float(price.exact) == pytest.approx(2 * 2**10, rel=1e-6)


def separation(side: np.ndarray, label: np.ndarray, t: int, *, last: bool) -> float:
    """The criterion by its definition: the best group of at most two labels, or the two most frequent labels."""
    p = np.bincount(label, minlength=t) / len(label)
    if last:
        first, second = np.argsort(-p, kind="stable")[:2]
        groups = [((label == first) * 1.0 - (label == second), 1.0)]
    else:
        some = [g for size in (1, 2) for g in itertools.combinations(range(t), size)]
        groups = [(np.isin(label, g) - p[list(g)].sum(), 1.0) for g in some]
    return max(abs(float((side * weights).sum())) for weights, _ in groups)


@pytest.mark.parametrize("t", [2, 3, 5])
def test_without_noise_choices_are_the_best_separations(t: int) -> None:
    """Every division of the exact tree has the highest score of all divisions, worked out row by row."""
    rng = np.random.default_rng(t)
    n = 4000
    X = np.column_stack([rng.integers(0, 8, n), rng.integers(0, 5, n), rng.integers(0, 3, n)])
    worth = X[:, 0] + 2 * np.cos(X[:, 1]) + 3 * (X[:, 2] == 1) + rng.normal(0, 1.5, n)
    label = np.digitize(worth, np.quantile(worth, np.arange(1, t) / t))
    columns = {"x": sulq.Int(0, 7), "z": sulq.Int(0, 4), "c": ["0", "1", "2"], "L": sulq.Int(0, t - 1)}
    data = {"x": X[:, 0], "z": X[:, 1], "c": [str(v) for v in X[:, 2]], "L": label}
    depth = 3
    with opened(columns, data) as db:
        plain = exact(db)
        model = ID3(max_depth=depth, criterion="separation")
        model.fit(plain[["x", "z", "c"]], plain["L"], spend=NOISELESS)
    place = np.zeros(n, dtype=int)
    sides = [(0, X[:, 0] <= cut) for cut in range(7)] + [(1, X[:, 1] <= cut) for cut in range(4)]
    sides += [(2, X[:, 2] == value) for value in range(3)]
    assert model.get_depth() == depth
    for number, node in enumerate(model.tree_.nodes):
        if node.leaf:
            continue
        here = place == number
        last = node.depth == depth - 1
        scores = [separation(np.where(side[here], 1, -1), label[here], t, last=last) for _, side in sides]
        to = np.array(node.branches)[X[here, node.attribute]]
        mine = separation(np.where(to == 0, 1, -1), label[here], t, last=last)
        assert mine >= max(scores) - 0.004 * here.sum()  # weights are whole thousandths
        place[here] = np.array(node.children)[to]


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.05), EpsilonDelta(1, 1e-6)])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one", "zero_out"])
def test_trees_with_noise_are_useful(spend: object, neighbors: str) -> None:
    """Of 20,000 rows whose label is two conditions with 5% flipped, more than 90% are predicted."""
    rng = np.random.default_rng(9)
    n = 20_000
    data = {"age": rng.integers(0, 100, n), "city": rng.choice(["H", "L"], n), "w": rng.random(n)}
    truth = (data["age"] > 40) & (data["city"] == "L")
    data["L"] = np.where(rng.random(n) < 0.05, ~truth, truth)
    columns = {"age": sulq.Int(0, 99), "city": ["H", "L"], "w": sulq.Real(0, 1), "L": sulq.Bool()}
    steps = []
    with opened(columns, data, EpsilonDelta(9, 1e-5), unit=sulq.Unit(neighbors=neighbors)) as db:
        model = ID3(max_depth=3)
        model.fit(db[["age", "city", "w"]], db["L"], spend=spend, progress=lambda *step: steps.append(step))
        facts = db.facts
    frame = pd.DataFrame(data)
    assert model.score(frame, truth) > 0.9
    whole = facts.counted(spend).rho if isinstance(spend, EpsilonDelta) else spend.exact
    assert 0 <= whole - model.spent_.exact <= Fraction(10, 10**15)
    assert steps[0] == (0, 7)
    assert (np.diff([done for done, _ in steps]) >= 0).all()
    proba = model.predict_proba(frame)
    assert np.allclose(proba.sum(axis=1), 1)
    assert (proba >= 0).all()


def test_within_two_points_of_scikit_learn_on_adult() -> None:
    """adult-train, depth 5, pure epsilon 1: held-out accuracy within .02 of the entropy tree's, the mean of 4 runs."""
    tree = pytest.importorskip("sklearn.tree")
    frame, columns = adult()
    names = [name for name in frame.columns if name != "income"]
    kept = np.random.default_rng(1).random(len(frame)) < 0.8
    coded = pd.get_dummies(frame[names])
    theirs = tree.DecisionTreeClassifier(criterion="entropy", max_depth=5).fit(coded[kept], frame["income"][kept])
    with opened(columns, {name: frame[name][kept].to_numpy() for name in frame.columns}) as db:
        ours = [ID3(max_depth=5).fit(db[names], db["income"], spend=Epsilon(1)) for _ in range(4)]
    score = np.mean([model.score(frame[~kept], frame["income"][~kept]) for model in ours])
    assert {model.criterion_ for model in ours} == {"separation"}
    assert score > theirs.score(coded[~kept], frame["income"][~kept]) - 0.02


ODD = {
    "nobody": {"age": [], "city": [], "L": []},
    "one row": {"age": [50], "city": ["H"], "L": ["a"]},
    "one class": {"age": [1, 2, 3, 4] * 9, "city": ["H", "L"] * 18, "L": ["b"] * 36},
    "constant": {"age": [7] * 36, "city": ["H"] * 36, "L": ["a", "b"] * 18},
    "missing": {"age": [None, 3] * 18, "city": [None, "X", "H"] * 12, "L": ["a", None, "b", "c"] * 9},
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
@pytest.mark.parametrize("criterion", ["auto", "entropy", "separation"])
def test_facts_of_the_data_are_no_errors_SR6(data: dict, criterion: str) -> None:
    """No rows, one class, constants, missing and undeclared cells: a valid model at the full charge."""
    columns = {"age": sulq.Int(0, 99), "city": ["H", "L"], "L": ["a", "b", "c"]}
    kinds = {"age": "Int64", "city": "object", "L": "object"}
    table = pd.DataFrame({name: pd.Series(data[name], dtype=kinds[name]) for name in columns})
    with sulq.connect(table, columns=columns, budget=Epsilon(9), synthetic=True) as db:
        for source in (db, exact(db)):
            model = ID3(max_depth=2, criterion=criterion).fit(source[["age", "city"]], source["L"], spend=Epsilon(1))
            assert 1 - model.spent_.exact <= Fraction(9, 10**15)
            asked = pd.DataFrame({"age": [0, 99, None], "city": ["H", "elsewhere", None]})
            assert np.isfinite(model.predict_proba(asked)).all()
            assert set(model.predict(asked)) <= {"a", "b", "c"}
            assert np.isfinite(model.feature_importances_).all()
    with opened({"age": sulq.Int(3, 3), "L": sulq.Int(1, 1)}, {"age": [3] * 5, "L": [1] * 5}) as db:
        model = ID3(criterion=criterion).fit(db[["age"]], db["L"], spend=Epsilon(1))
        assert model.predict([[3]]).tolist() == [1]


def test_bad_parameters_cost_nothing() -> None:
    """Each is refused by its name before the first ask."""
    columns, data = categorical(1)
    bad = [
        {"max_depth": 0}, {"max_depth": 2.5}, {"max_depth": 99}, {"n_bins": 1}, {"criterion": "gini"},
        {"splits": "some"}, {"tolerance": 0}, {"tolerance": -1.0}, {"beta": 0}, {"beta": 1.0}, {"beta": True},
        {"criterion": "separation", "splits": "multiway"}, {"criterion": "separation", "tolerance": 0.1},
    ]  # fmt: skip
    with opened(columns | {"w": sulq.Real(0, 1), "t": sulq.Text()}, data | {"w": [0.5] * 400, "t": ["x"] * 400}) as db:
        for parameters in bad:
            refused("bad-parameter", ID3(**parameters).fit, db[["A0"]], db["L"], spend=Epsilon(1))
        refused("wrong-kind", ID3().fit, db[["A0"]], db["w"], spend=Epsilon(1))
        refused("wrong-kind", ID3().fit, db[["t"]], db["L"], spend=Epsilon(1))
        refused("bad-question", ID3().fit, db[["A0"]], spend=Epsilon(1))
        refused("budget-exceeded", ID3().fit, db[["A0"]], db["L"], spend=Epsilon(901))
        for act in ("predict", "predict_proba", "apply"):
            refused("not-fitted", getattr(ID3(), act), [["0"]])
        for act in ("export_text", "plot", "get_depth", "get_n_leaves"):
            refused("not-fitted", getattr(ID3(), act))
        assert db.spent.amount == 0


def test_scikit_learns_conventions() -> None:
    """A clone has the parameters, a Pipeline predicts, a saved tree predicts the same."""
    base = pytest.importorskip("sklearn.base")
    pipeline = pytest.importorskip("sklearn.pipeline")
    columns, data = categorical(2, rows=2000)
    frame = pd.DataFrame(data)
    with opened(columns, data) as db:
        model = ID3(max_depth=2).fit(db[["A0", "A1", "A2", "A3"]], db["L"], spend=Epsilon(5))
    assert base.clone(model).get_params() == model.get_params()
    assert base.is_classifier(model)
    steps = pipeline.Pipeline([("tree", model)])
    assert (steps.predict(frame) == model.predict(frame[["A3", "A1", "A0", "A2"]])).all()
    assert steps.score(frame, frame["L"]) == model.score(frame, data["L"])
    again = learn.load(model.to_json())
    assert (again.predict_proba(frame) == model.predict_proba(frame)).all()
    assert again.export_text(show_weights=True) == model.export_text(show_weights=True)
    assert model.apply(frame).max() < len(model.tree_.nodes)
    assert model.get_n_leaves() == len(model.tree_.leaves)
    pytest.importorskip("matplotlib").use("agg")
    assert model.plot(max_depth=1).texts
    refused("bad-table", model.predict, frame[["A0"]])


def test_the_totals_of_a_level_use_every_table() -> None:
    """N_T and N_j are sums of the finest counts of all attributes, averaged: their variance is that of the mean.

    N = 450 draws of one level; within 6 standard errors of what is claimed, and better than one table alone.
    """
    columns, data = categorical(4, rows=500, attributes=6)
    names = [name for name in columns if name != "L"]
    runs, found = 150, []
    with opened(columns, data) as db:
        labels = Labels(db["L"])
        for _ in range(runs):
            tree = Tree(Attributes.of(db[names], 16), labels.classes)
            growth = EntropyGrowth(tree, labels, SpendPlan(db[names].oracle, Epsilon(1)), 1, SplitRule("multiway"))
            growth.finish = lambda: None
            growth.run()
            found.append(tree.nodes[0].counts)
    variance = tree.nodes[0].variance
    noise = np.array(found) - np.bincount([int(v) for v in data["L"]])
    assert abs(noise.mean()) < 6 * math.sqrt(variance / noise.size)
    # The kurtosis of a mean of 18 Laplace draws is 3 + 3/18.
    assert abs((noise**2).mean() / variance - 1) < 6 * math.sqrt((2 + 1 / 6) / noise.size)
    one_table = 3 * 2 * (6 / 0.75) ** 2
    assert variance == pytest.approx(one_table / 6, rel=3e-3)


def test_too_few_rows_are_divided_without_a_look_at_them() -> None:
    """Where no choice could tell, divisions are halves of public codes, the same for other rows."""
    shapes = []
    for seed in (1, 2):
        columns, data = categorical(seed, rows=60)
        columns |= {"w": sulq.Real(0, 1)}
        data |= {"w": np.random.default_rng(seed).random(60)}
        with opened(columns, data) as db:
            watch = Watch(exact(db)._oracle)
            X, y = ColumnChoice(("A0", "A1", "w"), watch), ColumnChoice(("L",), watch)
            model = ID3(max_depth=3, criterion="separation").fit(X, y, spend=Epsilon(0.1))
        assert [type(question) for question, _, _ in watch.asked] == [Sums, Sums]
        assert watch.asked[1][1].exact > Fraction(9, 100)
        assert 0.1 - float(model.spent_.exact) < 1e-14
        assert model.get_n_leaves() == 4  # two levels for three labels: rows for no more
        shapes.append([(node.attribute, node.branches) for node in model.tree_.nodes])
    assert shapes[0] == shapes[1]
    assert all(sorted(branches) == list(branches) for attribute, branches in shapes[0] if attribute == 2)


def test_only_sums_and_choices_are_asked() -> None:
    """Counts of labels, choices, counts of labels at the leaves: 2 * depth + 1 questions at most, all by keys."""
    columns, data = categorical(9, rows=3000)
    with opened(columns, data) as db:
        asked = watched(db, ID3(max_depth=3), ["A0", "A1"], Epsilon(1))
    assert [type(question) for question, _, _ in asked] == [Sums, Choose, Sums, Choose, Sums, Choose, Sums]
