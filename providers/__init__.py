"""Providers: the services that carry a message, one package or module for each."""
