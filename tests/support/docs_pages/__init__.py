"""Tables of the docs, generated from the code."""
