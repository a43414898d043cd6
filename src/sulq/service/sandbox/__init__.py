"""What a process of the service gives up before it works: files, sockets, programs, other processes.

Imports settings alone; holds no data and decides nothing about questions.
"""
