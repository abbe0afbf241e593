"""Tests of the rules that all packages share."""
