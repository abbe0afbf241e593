"""Reading the rows of files."""
