"""Workers: each reads one dataset's rows and draws the noise; it believes the ledger's MAC alone.

The only room of the service that names engines; holds no ledger and no token.
"""
