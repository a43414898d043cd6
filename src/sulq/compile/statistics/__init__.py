"""How far one person moves sums and statistics of the whole table, as plans foresee it.

Imports the language; the kernel works the same out again and believes nothing of it.
"""
