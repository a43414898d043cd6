"""Released integers to values, intervals, quantiles and prices; plans, receipts and the wire beside them.

Imports the language; draws no noise and sees no row.
"""
