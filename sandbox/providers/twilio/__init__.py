"""Twilio's Messages resource and its webhooks."""
