"""Files of recipients: uploaded, read, checked, and then the audience of a broadcast."""
