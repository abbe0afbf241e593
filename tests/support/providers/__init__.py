"""Provider accounts in the sandbox."""
