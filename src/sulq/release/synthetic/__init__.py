"""Synthetic rows: what is asked of the declared cells, a model of the answers, rows drawn from it.

Imports release/tables and release/space; sees answers only.
Never here: a row of the data, or an ask that is not paid from the spend of the release.
"""
