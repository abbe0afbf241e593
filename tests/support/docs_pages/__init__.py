"""Tables of the docs, made of the code."""
