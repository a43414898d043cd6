"""Learners of linear scores: regression, logistic regression, the perceptron and naive Bayes, with what they share.

May be imported: the learners, by `sulq.learn`. They read noisy sums and public facts.
Never here: a row, noise that protects people, or a loss other than what the spend plan paid.
"""

from __future__ import annotations

from sulq.learn.linear.regression import LinearRegression

__all__ = ["LinearRegression"]  # which stood here when this was a module
