"""Tallies to programs of the kernel: steps, numbers and conditions and keys made of them, vectors and sums.

Imports the language, the emitter and the kernel's words for programs. Nothing here is believed: the kernel certifies
every program (docs/theory/kernel.md). Never here: a row.
"""
