"""The version, and the files that state it. ``pyproject.toml`` is where it comes from."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SOURCE = "pyproject.toml"
PLACES: Mapping[str, str] = {
    SOURCE: r'(?<=\A\[project\]\nname = "notifyproject"\nversion = ")[^"]+',
    "notifyproject/__init__.py": r'(?<=^__version__ = ")[^"]+',
    "uv.lock": r'(?<=^name = "notifyproject"\nversion = ")[^"]+',
    "deploy/helm/Chart.yaml": r'(?<=^version: )\S+|(?<=^appVersion: ")[^"]+',
    "clients/python/pyproject.toml": r'(?<=^name = "notifyproject-client"\nversion = ")[^"]+',
    "clients/typescript/package.json": r'(?<=^  "version": ")[^"]+',
    "clients/typescript/testing/package.json": (
        r'(?<=^  "version": ")[^"]+|(?<="@notifyproject/client": ")[^"]+'
    ),
    "examples/typescript/package.json": (
        r'(?<="@notifyproject/client": ")[^"]+|(?<="@notifyproject/testing": ")[^"]+'
    ),
    "clients/typescript/package-lock.json": (
        r'(?<="name": "@notifyproject/client",\n  "version": ")[^"]+'
        r'|(?<="name": "@notifyproject/client",\n      "version": ")[^"]+'
    ),
}
"""Where each file states the version.

The web packages aren't among them: their version is in the address of a file that pages load.
"""
_FORM = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version of https://semver.org, without pre-releases."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the version that a text is. Raises ValueError."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a version such as 1.0.0")
        return cls(*map(int, found.groups()))

    @property
    def tag(self) -> str:
        """The name of its tag in git."""
        return f"v{self}"

    def may_break(self, previous: Self) -> bool:
        """Return whether its clients expect changes that break them."""
        return self.major > previous.major or previous.major == 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def before(version: Version, tags: Collection[str]) -> Version | None:
    """Return the highest lower version that has a tag."""
    tagged = (Version.parse(tag[1:]) for tag in tags if _FORM.fullmatch(tag[1:]) and tag[0] == "v")
    return max((each for each in tagged if each < version), default=None)


def stated(root: Path) -> dict[str, set[str]]:
    """Return the versions that each file states."""
    return {
        name: set(re.findall(pattern, (root / name).read_text("utf-8"), re.MULTILINE))
        for name, pattern in PLACES.items()
    }


def write(root: Path, version: Version) -> None:
    """Write a version to each file."""
    for name, pattern in PLACES.items():
        path = root / name
        text = re.sub(pattern, str(version), path.read_text("utf-8"), flags=re.MULTILINE)
        path.write_text(text, encoding="utf-8")
