"""Contingency tables: bases and coefficients, how they are asked, and the tables fitted to the answers.

Imports answers, the language and release/space; works on noisy numbers only.
Never here: files of a release as a whole (release/base.py), rows, noise of its own.
"""
