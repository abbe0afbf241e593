"""Alerts: rules are looked at every minute, and operators are told once of what breaks one.

docs/alerts.md has the rules that every installation starts with.
"""

from .evaluating import evaluate, evaluate_standstill
from .rules import add_missing_defaults

__all__ = ["add_missing_defaults", "evaluate", "evaluate_standstill"]
