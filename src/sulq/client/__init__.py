"""The far end of HTTP: an Oracle that asks a curator elsewhere.

May be imported: language, answers, httpx. Must never be here: the curator, engines, rows.
"""
