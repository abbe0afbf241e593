"""Benchmarks: each figure is printed with a baseline that was measured in the same run."""
