"""The pages of the console, one module a part; `console/app.py` lists them all.

Imports the console's forms, views and visits; never the clerk, and no API but the public one.
"""
