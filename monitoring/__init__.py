"""What operators look at: alerts, roll-ups, metrics, failure groups, provider health, workers."""
