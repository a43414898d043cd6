"""Text to a checked syntax tree: limits first, then one SELECT and nothing else.

The only room that names the parser's library; knows no schema and no row.
"""
