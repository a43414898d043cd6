"""The far end of HTTP: the same Oracle and the same desk, before a curator elsewhere."""
