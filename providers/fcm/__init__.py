"""Push by Firebase Cloud Messaging."""
