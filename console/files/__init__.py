"""A file of recipients that staff send to: upload, columns, check, preview, and confirmation."""
