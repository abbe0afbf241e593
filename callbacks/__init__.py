"""Callbacks: webhooks that notify clients of events of their notifications."""
