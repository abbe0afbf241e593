"""Ways to reach people: one module for each provider, no database and no queue in any of them."""
