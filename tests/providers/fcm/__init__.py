"""Tests of FCM."""
