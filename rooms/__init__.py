"""Rooms of teams: where they are, and which take messages."""
