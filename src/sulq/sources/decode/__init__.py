"""What is trusted of reading: bytes to records, each by itself, and the cell that names a person to that person (SR25).

May be imported: errors, version, the kernel and libraries. Never here: declarations, questions, or how other cells are
read, which is proposed, and certified by `sulq.kernel.keep`.
"""
