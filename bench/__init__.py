"""Benchmarks: each figure is printed with what it is compared to, measured in the same run."""
