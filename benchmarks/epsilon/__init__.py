"""What an epsilon buys, part by part, beside the best peer: writes docs/benchmarks-epsilon.md."""
