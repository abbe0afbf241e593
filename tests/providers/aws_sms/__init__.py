"""Tests of AWS SMS."""
