"""Tests of WhatsApp."""
