"""Providers: adapters for the services that send messages, one package or module each."""
