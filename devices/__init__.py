"""The registry of devices that push messages reach."""
