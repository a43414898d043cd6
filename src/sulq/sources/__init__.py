"""Where rows come from: files, frames and tables of databases, brought to typed rows for the kernel to keep.

Here may be imported: the kernel, errors and version. Never here: questions, plans, prices, noise.
"""
