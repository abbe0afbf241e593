"""The repository of a release, and the commands that run in it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

TAIL = 30
"""Lines of a failed command's output that are shown."""


class ReleaseError(RuntimeError):
    """A commit can't be released. The message says why."""


def run(*command: str | Path, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command, and return its output. Raises ReleaseError with the end of its output."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        end = "\n".join(done.stdout.splitlines()[-TAIL:])
        raise ReleaseError(f"`{' '.join(words)}` failed in {cwd}:\n{end}")
    return done.stdout


class Repository:
    """A repository of git, whose commit is released."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *words: str) -> str:
        """Return what git answers, without the last line's end."""
        return run("git", *words, cwd=self.root).rstrip("\n")

    def changed_files(self) -> Sequence[str]:
        """Return the files that differ from the commit, and those that git doesn't know."""
        return self.git("status", "--porcelain").splitlines()

    def commit(self, name: str = "HEAD") -> str:
        """Return the ID of a commit."""
        return self.git("rev-parse", f"{name}^{{commit}}")

    def seconds(self) -> str:
        """Return when the commit was made, for SOURCE_DATE_EPOCH."""
        return self.git("show", "--no-patch", "--format=%ct", "HEAD")

    def tags(self) -> Sequence[str]:
        """Return the tags of this commit and of those before it."""
        return self.git("tag", "--merged", "HEAD").splitlines()

    def text(self, name: str, *, tag: str) -> str:
        """Return a file as it was at a tag."""
        return self.git("show", f"{tag}:{name}")

    def files(self, *folders: str, tag: str) -> Mapping[str, str]:
        """Return the files below folders at a tag, each with the ID of its content."""
        lines = self.git("ls-tree", "-r", "--format=%(objectname) %(path)", tag, *folders)
        return {
            path: content for content, path in (line.split(" ", 1) for line in lines.splitlines())
        }

    def check_out(self, folder: Path, *, commit: str) -> None:
        """Clone the repository to a folder, at a commit."""
        run(
            "git", "clone", "--quiet", "--shared", "--no-checkout", self.root, folder, cwd=self.root
        )
        run("git", "checkout", "--quiet", "--detach", commit, cwd=folder)
