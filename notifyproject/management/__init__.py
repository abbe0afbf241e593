"""Commands of the project package."""
