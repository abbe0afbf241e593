"""Faults on purpose: real processes are killed, frozen and cut off, and three records are joined.

What the client was told, what the provider got, and what MongoDB says must agree. How to run it and
how to add a scenario: docs/reference/fault_injection.md.
"""
