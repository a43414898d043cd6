"""Readings: how released integers become a statistic, with intervals for noise alone or noise and sampling.

May be imported: the rest of `answers`, and whatever asks. Imports laws, kinds and the released integers.
Never here: a row, a draw of noise, or a question.
"""
