"""Tests of the shared rules."""
