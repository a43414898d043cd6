"""What questions ask of sums and of the whole table, before the kernel looks at it."""
