"""What tests store and build."""
