"""Decision trees: the tree itself, the two ways to grow one, and how people read it.

May be imported: `ID3`, by `sulq.learn`. A tree holds noisy counts over public cells.
Never here: a row, noise that protects people, or a division that was read off the data without an ask.
"""
