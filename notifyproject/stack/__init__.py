"""The local stack: servers from wheels, all programs, one supervisor, and one log."""
