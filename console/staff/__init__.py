"""Staff accounts, roles, and sign-in."""
