"""The far end of HTTP: requests to a curator, and an Oracle made of them.

Imports the wire format and the language; never a source, a ledger or the service.
"""
