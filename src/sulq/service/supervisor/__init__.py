"""The supervisor: starts the service's processes, restarts those that die, ends a worker that overruns.

Imports the sandbox, settings and messages of the service; never opens data or ledgers.
"""
