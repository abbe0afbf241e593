"""AWS End User Messaging SMS, and what it publishes to a topic."""
