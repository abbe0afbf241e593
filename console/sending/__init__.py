"""One message that a member of staff sends: its type, recipient, data, preview, and time."""
