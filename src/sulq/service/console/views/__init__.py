"""What the console shows of the API's replies: tables, charts, results of jobs, transcripts, and words for losses.

Imports the language and the wire format; calls no API but to page through a transcript.
"""
