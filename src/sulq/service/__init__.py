"""The curator as a service: web, clerk and workers as processes of their own, and who keeps them running.

One folder a process; what several of them need (settings, messages, logs, the schedule of answers) lies here.
"""
