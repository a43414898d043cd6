"""Expressions and relations over rows, before anything is released: lowered to row functions.

Imports the syntax and the language of questions; never evaluates a row.
"""
