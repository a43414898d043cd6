"""Learners without a label: SVD, PCA and k-means, with the space of public bounds and the noisy moments they share.

May be imported: the learners, by `sulq.learn`; the space and the moments, by `sulq.learn.vertical`.
Never here: a row, noise that protects people, or a bound that is not declared.
"""
