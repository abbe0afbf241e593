"""Brands, layouts, and partials: their list, a page for each, and what was changed when."""
