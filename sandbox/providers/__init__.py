"""The providers the sandbox stands in for, a module each."""
