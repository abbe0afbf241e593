"""Fault injection: kill, freeze, and disconnect real processes, and compare three records.

The client's answers, the provider's requests, and MongoDB's documents must agree.
docs/reference/fault_injection.md describes how to run it and how to add a scenario.
"""
