"""Parts that pages are made of: lists, filters, columns, labels."""
