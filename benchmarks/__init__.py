"""Benchmarks of sulq: ratios against a baseline measured in the same run decide; seconds decide nothing."""
