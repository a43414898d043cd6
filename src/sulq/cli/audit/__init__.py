"""`sulq audit`: checks of an installed copy against what it promises, each with a control that must fail.

May be imported: everything below `cli`; OpenDP by `opendp` alone. Must never be here: a check that needs real data.
"""
