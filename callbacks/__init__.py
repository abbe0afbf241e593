"""Callbacks: signed webhooks that tell clients about changes of their notifications."""
