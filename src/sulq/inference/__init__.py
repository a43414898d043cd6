"""Inference: regressions and tests whose intervals count noise and sampling.

May be imported: the inference asks of `sulq.api`. They read noisy sums and public facts.
Never here: a row, noise that protects people, or a random number; what noise does is worked out from its law.
"""
