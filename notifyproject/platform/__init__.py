"""The platform that every package stands on."""
