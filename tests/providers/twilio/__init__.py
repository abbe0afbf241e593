"""Tests of Twilio."""
