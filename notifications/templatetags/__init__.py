"""What the pages of the console use in their templates."""
