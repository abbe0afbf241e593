"""Intake of requests: validates, completes, and stores them, and enqueues wake-ups."""
