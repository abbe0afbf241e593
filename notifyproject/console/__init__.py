"""What the pages of every app's admin are made of, and how their buttons are answered."""
