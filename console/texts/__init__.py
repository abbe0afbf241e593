"""What the console says about states, waits, and failures."""
