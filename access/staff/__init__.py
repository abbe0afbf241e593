"""Staff: permissions, sign-in, and second factor."""
