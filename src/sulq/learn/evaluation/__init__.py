"""How good a fitted model is, told by noisy sums: its prediction as a row function, scores, curves, folds.

May be imported: the functions that `sulq.learn` names; learners take `prediction`.
Never here: a row, noise that protects people, or a prediction that is anything but public numbers and row functions.
"""
