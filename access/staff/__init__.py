"""Staff: permissions, sign-in, second factor."""
