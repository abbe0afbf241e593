"""What is shown where: results on the output, all else on the error stream.

Colours and progress are for people: only a terminal gets them. ``NO_COLOR`` in the environment, or
a terminal that calls itself ``dumb``, has no colours: https://no-color.org.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

NO_COLOUR, TERMINAL, DUMB = "NO_COLOR", "TERM", "dumb"
_BOLD, _RED, _GREEN, _CYAN = "1", "31", "32", "36"
_LINES = {"---": _BOLD, "+++": _BOLD, "@@ ": _CYAN}
"""Colours of the lines of a difference, by how they begin, before those of single signs."""
_SIGNS = {"-": _RED, "+": _GREEN}
_CLEAR = "\r\x1b[K"


@dataclass(slots=True)
class Screen:
    """The output and the error stream of one call."""

    out: TextIO
    err: TextIO
    environment: Mapping[str, str]
    _has_progress: bool = False

    def say(self, text: str, *, end: str = "\n") -> None:
        """Show a result."""
        self._end_progress()
        print(text, file=self.out, end=end, flush=True)

    def warn(self, text: str) -> None:
        """Show what isn't a result."""
        self._end_progress()
        print(text, file=self.err)

    def ask(self, text: str) -> None:
        """Show a question, whose answer is typed behind it."""
        self._end_progress()
        print(text, file=self.err, end="", flush=True)

    def progress(self, text: str) -> None:
        """Show on a terminal what is being done. The next text takes its place."""
        if self.err.isatty():
            self._has_progress = True
            print(f"{_CLEAR}{text}", file=self.err, end="", flush=True)

    def close(self) -> None:
        """Take the progress away."""
        self._end_progress()

    def strong(self, text: str) -> str:
        """Return what a line begins with, as it is shown."""
        return self._coloured(text, _BOLD)

    def difference(self, text: str) -> str:
        """Return a difference as it is shown."""
        return "\n".join(map(self._difference_line, text.split("\n")))

    def _difference_line(self, line: str) -> str:
        code = _LINES.get(line[:3]) or _SIGNS.get(line[:1])
        return line if code is None else self._coloured(line, code)

    def _coloured(self, text: str, code: str) -> str:
        is_plain = self.environment.get(NO_COLOUR) or self.environment.get(TERMINAL) == DUMB
        return text if is_plain or not self.out.isatty() else f"\x1b[{code}m{text}\x1b[0m"

    def _end_progress(self) -> None:
        if self._has_progress:
            self._has_progress = False
            print(_CLEAR, file=self.err, end="", flush=True)
