"""Where rows come from: files, frames and tables of databases, brought to typed rows for the kernel to keep.

Imports the compiler, the language and the kernel; `decode/` imports the kernel alone. Only the database and the
service's workers import this room. It never prices, debits or draws noise.
"""
