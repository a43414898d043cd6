"""Work that takes longer than a request: learners and releases, asked through the clerk.

A process of its own (main) with one child a running job (fork_server, runner); never sees a row, and the children
never see a token. The web process imports `client` alone.
"""
