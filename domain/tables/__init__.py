"""Rows of files that people write: CSV, TSV, and XLSX."""
