"""Monitoring: alerts, roll-ups, metrics, failure groups, provider health, worker status."""
