"""The files that ``COPY . .`` copies, by the rules of ``.dockerignore``.

https://docs.docker.com/reference/dockerfile/#dockerignore-file
"""

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    text: str
    lets_in: bool
    """The line begins with ``!``."""
    regex: re.Pattern[str]

    def matches(self, path: PurePosixPath) -> bool:
        """Return whether the pattern matches the path or one of its folders."""
        folders = [str(folder) for folder in path.parents if folder != PurePosixPath(".")]
        return any(self.regex.fullmatch(one) for one in (str(path), *folders))


def patterns(text: str) -> list[Pattern]:
    found = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        lets_in = line.strip().startswith("!")
        cleaned = posixpath.normpath(line.strip().removeprefix("!").strip()).lstrip("/")
        found.append(Pattern(text=cleaned, lets_in=lets_in, regex=_regex(cleaned)))
    return found


def is_excluded(path: PurePosixPath, by: Sequence[Pattern]) -> bool:
    """Return whether a path is excluded. The last matching pattern decides."""
    last = next((one for one in reversed(by) if one.matches(path)), None)
    return last is not None and not last.lets_in


def copied(root: Path, by: Sequence[Pattern], *, every_folder: bool) -> set[str]:
    """Return the files below a folder that are copied.

    BuildKit enters every folder if a pattern of ``!`` has wildcards. Podman and Docker's old
    builder enter an excluded folder only if such a pattern begins with its name.
    """
    return set(_copied(root, PurePosixPath("."), by, every_folder))


def _copied(
    root: Path, folder: PurePosixPath, by: Sequence[Pattern], every_folder: bool
) -> Iterator[str]:
    for entry in os.scandir(root / folder):
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            begins = any(f"{one.text}/".startswith(f"{path}/") for one in by if one.lets_in)
            if every_folder or begins or not is_excluded(path, by):
                yield from _copied(root, path, by, every_folder)
        elif not is_excluded(path, by):
            yield str(path)


def _regex(pattern: str) -> re.Pattern[str]:
    """Return the pattern as a regular expression: Go's ``filepath.Match``, and ``**``."""
    parts = re.findall(r"\*\*/?|\*|\?|\[[^\]]*\]|\\.|.", pattern)
    words = []
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part.startswith("**"):
            words.append(".*" if is_last else "(.*/)?")
        elif part in ("*", "?"):
            words.append(f"[^/]{part.replace('?', '')}")
        elif part.startswith("["):
            words.append(part)
        else:
            words.append(re.escape(part.removeprefix("\\")))
    return re.compile("".join(words))
