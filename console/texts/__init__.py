"""Texts of the console about states, waits, and failures."""
