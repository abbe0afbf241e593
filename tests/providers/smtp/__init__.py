"""Tests of SMTP."""
