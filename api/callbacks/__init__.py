"""REST operations on a client's callback endpoint and its deliveries."""
