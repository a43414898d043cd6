"""Commands by which an owner sets a dataset up: its declarations written, checked against the rows, people erased.

May import what other commands do; what reads rows is `sulq.api.owner`. Nothing that is printed here is kept.
"""
