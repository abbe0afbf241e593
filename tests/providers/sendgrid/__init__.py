"""Tests of SendGrid."""
