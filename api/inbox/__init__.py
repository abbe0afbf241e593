"""REST operations on a recipient's inbox, its tokens, and its event stream."""
