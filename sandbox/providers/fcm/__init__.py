"""Firebase Cloud Messaging's HTTP v1 API."""
