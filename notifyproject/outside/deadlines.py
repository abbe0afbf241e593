"""One time limit over a whole exchange, however slowly the other side speaks."""

import io
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of an exchange, on a clock that nobody sets back."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.at

    def left(self) -> float:
        """Return the seconds that are left; raises TimeoutError if there are none."""
        seconds = self.at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the time limit is over")
        return seconds


class DeadlineReader(io.RawIOBase):
    """A socket's input that ends in time and does not go on for ever.

    ``left`` returns the seconds left and raises TimeoutError if there are none; ``allowance`` is
    the number of bytes it still reads, None for any number.
    """

    def __init__(
        self, sock: socket.socket, left: Callable[[], float], *, allowance: int | None = None
    ) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._left = left
        self.allowance = allowance

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read once; raises TimeoutError at the deadline, OSError when the allowance is used up."""
        if self.allowance is not None and self.allowance <= 0:
            raise OSError("the other side says more than is read")
        self._sock.settimeout(self._left())
        count = self._raw.readinto(buffer)
        if self.allowance is not None:
            self.allowance -= count or 0
        return count

    def close(self) -> None:
        """Close the input; the socket stays."""
        self._raw.close()
        super().close()
