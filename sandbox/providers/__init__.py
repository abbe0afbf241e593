"""The providers that the sandbox stands in for, each in its own package."""
