"""Tests of the guide that adds a channel and its provider."""
