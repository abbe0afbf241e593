"""Meta's WhatsApp Cloud API and its webhooks."""
