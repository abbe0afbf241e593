"""Events and the figures rolled up from them."""
