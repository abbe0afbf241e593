"""Console pages of broadcasts: the list, one broadcast, and its actions."""
