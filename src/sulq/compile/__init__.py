"""Question to plan to statements: proposes, and is never believed.

Imports the language, answers' values and the kernel's words; reads no row and opens no source.
"""
