"""Statistics of few attributes on random subsets of the people, and what they tell of more attributes together.

Imports answers, the language and release/marginal.py; a public hash names the subsets.
Never here: a choice of subsets by the data.
"""
