"""A request, its deliveries, attempts and receipts: the heart of the service."""
