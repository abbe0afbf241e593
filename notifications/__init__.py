"""Notifications: requests, their deliveries and attempts, and the receipts for them."""
