"""The console's forms: the fields a page asks for, and the API's parameters from what was sent.

Imports the console's requests and words; calls no API.
"""
