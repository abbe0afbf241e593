"""Providers: adapters for the services that send messages.

A package is a provider. Modules with a common prefix are what several share: ``email_``, ``aws_``,
``room_``.
"""
