"""Append-only record of every debit, and the filter that decides on the next one."""
