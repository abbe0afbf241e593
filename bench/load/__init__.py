"""Benchmarks of load over time: a provider with limits, an hour of mail, timers, and streams."""
