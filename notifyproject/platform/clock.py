"""The present as the callers of a batch read it."""

from collections.abc import Callable
from datetime import datetime

Clock = Callable[[], datetime]
