"""Files of recipients: how they are read and checked."""
