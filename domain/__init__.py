"""States, errors, retry rules, times, and content types that all packages share. Pure."""
