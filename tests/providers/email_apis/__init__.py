"""Tests of the providers of email with an API: one table of answers and events for each."""
