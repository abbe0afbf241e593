"""Building blocks of pages: lists, filters, columns, and formats."""
