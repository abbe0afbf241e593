"""Providers of email with an API, beside SendGrid."""
