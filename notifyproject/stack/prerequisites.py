"""Checks the machine's prerequisites for ``make`` and, as root, installs them by apt.

Only the standard library is imported, because no virtual environment may exist yet.
"""

import argparse
import ctypes
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

VENV = Path(__file__).resolve().parent.parent.parent / ".venv"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Programs for the browser tests, in order of preference. The headless shell draws no window, which
saves a quarter of the CPU time."""
APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120")
APT_SECONDS = 900
LDD_SECONDS = 10.0
CONTAINERS = "docker compose -f docker-compose.try.yml"
SYSTEMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows", "cygwin": "Windows"}
"""Names of systems, by ``sys.platform``, for those who don't know them by it."""
_MISSING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
_TOO_OLD = re.compile(r"version `(\S+)' not found")


class Kind(StrEnum):
    """The kind of check that finds a prerequisite."""

    LIBRARY = "library"
    MODULE = "module"
    BROWSER = "browser"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prerequisite:
    """A package of the system that no wheel contains."""

    kind: Kind
    name: str
    package: str
    needed_by: str

    @property
    def is_met(self) -> bool:
        """Whether this machine has the prerequisite."""
        match self.kind:
            case Kind.LIBRARY:
                return _can_load(self.name)
            case Kind.MODULE:
                return importlib.util.find_spec(self.name) is not None
            case Kind.BROWSER:
                return browser() is not None


def browser() -> str | None:
    """Return the path of a browser for the tests, or None."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def _libraries(needed_by: str, **packages: str) -> tuple[Prerequisite, ...]:
    return tuple(
        Prerequisite(kind=Kind.LIBRARY, name=name, package=package, needed_by=needed_by)
        for name, package in packages.items()
    )


MONGOD = _libraries(
    "mongod",
    **{
        "libcurl.so.4": "libcurl4",
        "libssl.so.3": "libssl3",
        "libcrypto.so.3": "libssl3",
        "liblzma.so.5": "liblzma5",
        "libgcc_s.so.1": "libgcc-s1",
    },
)
NODE = _libraries(
    "Playwright",
    **{
        "libatomic.so.1": "libatomic1",
        "libstdc++.so.6": "libstdc++6",
        "libgcc_s.so.1": "libgcc-s1",
    },
)
PIP = Prerequisite(
    kind=Kind.MODULE, name="ensurepip", package="python3-venv", needed_by="a virtual environment"
)
BROWSER = Prerequisite(
    kind=Kind.BROWSER,
    name="chromium",
    package="chromium-headless-shell",
    needed_by="the browser tests",
)
PACKAGES = {prerequisite.name: prerequisite.package for prerequisite in (*MONGOD, *NODE)}


class Purpose(StrEnum):
    """The purpose of a check: the stack, or the tests."""

    UP = "up"
    TEST = "test"


def unsupported(environ: Mapping[str, str]) -> str | None:
    """Return what to do instead where MongoDB has no wheel, None where it has or isn't needed."""
    if _has_wheels() or environ.get("MONGODB_URI"):
        return None
    system = SYSTEMS.get(sys.platform, sys.platform)
    return (
        "The wheel of MongoDB is for Linux with glibc on x86-64, and this is "
        f"{system} on {platform.machine()}. Run the same in containers:\n\n"
        f"    {CONTAINERS} up\n\n"
        "or set MONGODB_URI to a replica set of MongoDB 6.0 or later, and REDIS_URL to a Valkey. "
        "On Windows, WSL 2 is such a Linux."
    )


def _has_wheels() -> bool:
    is_linux = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    return is_linux and platform.machine() == "x86_64"


def prerequisites_for(purpose: Purpose) -> tuple[Prerequisite, ...]:
    """Return the prerequisites of a purpose on this machine."""
    is_linux = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    return (
        *(() if (VENV / "bin" / "pip").exists() else (PIP,)),
        *(MONGOD if _has_wheels() and not os.environ.get("MONGODB_URI") else ()),
        *(NODE if is_linux and purpose is Purpose.TEST else ()),
        *((BROWSER,) if purpose is Purpose.TEST else ()),
    )


def find_missing(prerequisites: Iterable[Prerequisite]) -> list[Prerequisite]:
    """Return the prerequisites that this machine lacks."""
    return [prerequisite for prerequisite in prerequisites if not prerequisite.is_met]


def format_missing(missing: Sequence[tuple[str, str]]) -> str:
    """Format names with the programs that need them: ``libcurl.so.4 (for mongod) and …``."""
    parts = [f"{name} (for {needed_by})" for name, needed_by in missing]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def how_to_install(packages: Sequence[str]) -> str:
    """Return the advice to install some of Debian's packages on this machine."""
    names = shlex.join(sorted(set(packages)))
    if shutil.which("apt-get") is None:
        return f"install it with your system's package manager; Debian's packages: {names}"
    if os.geteuid() and shutil.which("sudo") is None:
        return f"run `apt install {names}` as root, then try again"
    return f"run `{'sudo ' if os.geteuid() else ''}apt install {names}`, then try again"


def install(packages: Sequence[str]) -> None:
    """Install packages by apt, as root; print the output of a failure."""
    install_arguments = ("install", "-y", "--no-install-recommends", *sorted(set(packages)))
    for arguments in (("update",), install_arguments):
        try:
            finished = _run(*APT, *arguments, timeout=APT_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"apt-get {arguments[0]} took longer than {APT_SECONDS} s", file=sys.stderr)
            return
        if finished.returncode:
            print(finished.stdout, end="", file=sys.stderr)
            return


class MissingLibraryError(RuntimeError):
    """The system lacks a library that a program needs. The message says how to install it."""


def check_libraries(*, program: str, binary: Path) -> None:
    """Check the shared libraries of a binary, if ``ldd`` can. Raises MissingLibraryError."""
    ldd = shutil.which("ldd")
    if ldd is None:
        return
    try:
        traced = _run(ldd, str(binary), timeout=LDD_SECONDS).stdout
    except subprocess.TimeoutExpired:
        return
    if missing := sorted(set(_MISSING.findall(traced))):
        raise MissingLibraryError(_library_advice(program, missing))
    if versions := sorted(set(_TOO_OLD.findall(traced))):
        raise MissingLibraryError(
            f"This system is too old for {program}: its libraries lack {', '.join(versions)}."
        )


def playwright_binary() -> Path | None:
    """Return the path of Playwright's Node.js, or None if it is not installed."""
    package = importlib.util.find_spec("playwright")
    if package is None or package.submodule_search_locations is None:
        return None
    path = Path(package.submodule_search_locations[0]) / "driver" / "node"
    return path if path.exists() else None


def check_playwright() -> None:
    """Check that Playwright's Node.js has its shared libraries. Raises MissingLibraryError."""
    if (binary := playwright_binary()) is not None:
        check_libraries(program="Playwright", binary=binary)


def _run(*command: str, timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=timeout,
    )


def _library_advice(program: str, missing: list[str]) -> str:
    lacks = f"This machine lacks {format_missing([(name, program) for name in missing])}"
    unknown = [name for name in missing if name not in PACKAGES]
    known = [PACKAGES[name] for name in missing if name not in unknown]
    advice = [f"install the package that has {' and '.join(unknown)}"] if unknown else []
    advice += [how_to_install(known)] if known else []
    return f"{lacks}: {'; '.join(advice)}."


def main() -> None:
    """Check, and install or print missing packages; exit with 1 if any remain."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("purpose", type=Purpose, choices=list(Purpose))
    purpose = parser.parse_args().purpose
    if purpose is Purpose.UP and (advice := unsupported(os.environ)):
        raise SystemExit(advice)
    needed = prerequisites_for(purpose)
    missing = find_missing(needed)
    if not missing:
        return
    packages = [prerequisite.package for prerequisite in missing]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print(
            f"This machine lacks {_format_all(missing)}: "
            f"apt installs {shlex.join(sorted(set(packages)))} …",
            flush=True,
        )
        install(packages)
        missing = find_missing(missing)
    if missing:
        advice = how_to_install([prerequisite.package for prerequisite in missing])
        raise SystemExit(f"This machine lacks {_format_all(missing)}: {advice}.")


def _format_all(missing: Sequence[Prerequisite]) -> str:
    return format_missing([(prerequisite.name, prerequisite.needed_by) for prerequisite in missing])


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
