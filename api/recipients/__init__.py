"""REST operations on recipients and their preferences."""
