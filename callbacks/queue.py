"""The queue of the calls to apps, the last that a worker serves. Pure: the settings name it."""

QUEUE = "callbacks"
