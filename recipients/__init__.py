"""Recipients: contact details, preferences, and suppressions."""
