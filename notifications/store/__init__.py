"""The only writer of delivery state, by compare-and-set. Transitions: docs/reference/states.md."""
