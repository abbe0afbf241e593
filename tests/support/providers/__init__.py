"""Accounts with providers in the sandbox."""
