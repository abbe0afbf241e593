"""The people notifications are for: contact details, preferences, suppressions."""
