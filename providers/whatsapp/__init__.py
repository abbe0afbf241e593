"""WhatsApp by Meta's Cloud API."""
