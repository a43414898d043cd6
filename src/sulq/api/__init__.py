"""What people type: `connect`, the `Database` and `Client` it returns, and the named asks that both share.

May be imported: every layer below; engines by `database` alone. Must never be here: HTTP routes, commands, settings.
"""
