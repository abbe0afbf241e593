"""The whole service on one machine: real servers from wheels, one supervisor, one log."""
