"""What only test keys have: the test outbox."""
