"""Append-only record of every debit, the shares of analysts, and which data a ledger covers.

May be imported: the kernel's ledger, the language, answers' wire. Must never be here: a row, an engine, noise.
"""
