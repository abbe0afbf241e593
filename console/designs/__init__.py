"""The items of the design: their list, a page for each, and what was changed when."""
