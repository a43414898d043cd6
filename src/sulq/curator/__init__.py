"""The trusted party: it turns a question into a noisy answer, and counts what that cost.

Imports the compiler and the kernel, which it asks to certify, debit and run; never a source: engines are handed to it.
"""
