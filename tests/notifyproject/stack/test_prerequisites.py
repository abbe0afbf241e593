"""Machine prerequisites: complete, named in the README, and checked first."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from django.conf import settings

from notifyproject.stack import prerequisites, servers
from notifyproject.stack.prerequisites import MONGOD, NODE, Kind, Prerequisite, Purpose
from tests.support.tables import each_case

ROOT = Path(settings.BASE_DIR)
FOR_A_CLONE = {"git", "ca-certificates", "make", "curl"}
IN_EVERY_DEBIAN = {"libssl3", "liblzma5", "libgcc-s1", "libstdc++6"}
"""Every Debian has these packages."""
GLIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2")
NOWHERE = Prerequisite(
    kind=Kind.LIBRARY, name="libnowhere.so.4", package="libnowhere4", needed_by="mongod"
)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let mongod require a library that doesn't exist."""
    monkeypatch.setattr(prerequisites, "MONGOD", (NOWHERE,))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.delenv("MONGODB_URI", raising=False)
    monkeypatch.setattr(sys, "argv", ["prerequisites.py", "up"])
    return monkeypatch


def linked(binary: Path) -> dict[str, Path]:
    """Return the libraries that a binary is linked with, directly or not."""
    result = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=True).stdout
    return {name: Path(path) for name, path in re.findall(r"^\s*(\S+) => (/\S+)", result, re.M)}


def brought(binary: Path, names: Iterable[str]) -> set[str]:
    """Return those of these libraries that a binary needs, with the libraries that they need."""
    paths = linked(binary)
    found = {name for name in (*names, *GLIBC) if name in paths}
    return found | {other for name in found for other in linked(paths[name])}


@each_case("program", ["mongod", "valkey-server", "node"])
def test_linked_libraries_are_declared(program: str) -> None:
    node = prerequisites.playwright_binary()
    assert node is not None
    binary, declared = {
        "mongod": (servers.mongod_binary(), MONGOD),
        "valkey-server": (servers.valkey_binary(), ()),
        "node": (node, NODE),
    }[program]
    names = {prerequisite.name for prerequisite in declared}
    assert names <= linked(binary).keys(), "what is declared is needed"
    assert linked(binary).keys() <= brought(binary, names), "what is needed is declared"


def test_this_machine_meets_the_test_prerequisites() -> None:
    assert prerequisites.find_missing(prerequisites.prerequisites_for(Purpose.TEST)) == []


def test_readme_names_the_missing_packages() -> None:
    first, second = re.findall(r"^    apt install (.+)$", (ROOT / "README.md").read_text(), re.M)
    up = {prerequisite.package for prerequisite in (*MONGOD, prerequisites.PIP)} - IN_EVERY_DEBIAN
    test = {
        prerequisite.package for prerequisite in (*NODE, prerequisites.BROWSER)
    } - IN_EVERY_DEBIAN
    assert set(first.split()) == FOR_A_CLONE | up
    assert set(second.split()) == test


def test_external_database_needs_no_library(without: pytest.MonkeyPatch) -> None:
    assert NOWHERE in prerequisites.prerequisites_for(Purpose.UP)
    without.setenv("MONGODB_URI", "mongodb://db.example.com/notify")
    assert NOWHERE not in prerequisites.prerequisites_for(Purpose.UP)


@pytest.mark.parametrize(
    ("system", "machine", "libc", "words"),
    [
        ("darwin", "arm64", "", "this is macOS on arm64"),
        ("darwin", "x86_64", "", "this is macOS on x86_64"),
        ("win32", "AMD64", "", "this is Windows on AMD64"),
        ("linux", "aarch64", "glibc", "this is Linux on aarch64"),
        ("linux", "x86_64", "", "this is Linux on x86_64"),  # Alpine
        ("freebsd14", "amd64", "", "this is freebsd14 on amd64"),
    ],
)
def test_other_system_is_told_at_once_what_to_do_instead(
    without: pytest.MonkeyPatch, system: str, machine: str, libc: str, words: str
) -> None:
    without.setattr(sys, "platform", system)
    without.setattr(platform, "machine", lambda: machine)
    without.setattr(platform, "libc_ver", lambda: (libc, "2.36"))
    without.setattr(prerequisites, "find_missing", lambda some: pytest.fail("not at once"))
    with pytest.raises(SystemExit) as caught:
        prerequisites.main()
    message = str(caught.value)
    assert words in message
    (command,) = re.findall(r"^    (.+)$", message, re.MULTILINE)
    assert command == "docker compose -f docker-compose.try.yml up"
    assert (ROOT / command.split()[3]).exists()

    without.setattr(prerequisites, "find_missing", lambda some: [])
    without.setenv("MONGODB_URI", "mongodb://db.example.com/notify")
    prerequisites.main()  # It has a database of its own.


def test_wsl_is_a_linux(without: pytest.MonkeyPatch) -> None:
    without.setattr(sys, "platform", "linux")
    without.setattr(platform, "release", lambda: "5.15.153.1-microsoft-standard-WSL2")
    without.setattr(platform, "libc_ver", lambda: ("glibc", "2.39"))
    assert prerequisites.unsupported({}) is None


@each_case(
    "programs, command",
    [
        ({"apt-get"}, "run `apt install libnowhere4` as root"),
        ({"apt-get", "sudo"}, "run `sudo apt install libnowhere4`"),
        (set(), "install it with your system's package manager; Debian's packages: libnowhere4"),
    ],
)
def test_other_users_get_one_command(
    without: pytest.MonkeyPatch, programs: set[str], command: str
) -> None:
    without.setattr(os, "geteuid", lambda: 1000)
    without.setattr(shutil, "which", lambda name: name if name in programs else None)
    without.setattr(prerequisites, "install", lambda packages: pytest.fail("not root"))
    with pytest.raises(SystemExit) as caught:
        prerequisites.main()
    message = str(caught.value)
    assert message.startswith(f"This machine lacks libnowhere.so.4 (for mongod): {command}")
    assert "\n" not in message


def test_root_installs_with_apt(
    without: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed: list[str] = []

    def install(packages: list[str]) -> None:
        assert "apt installs libnowhere4" in capsys.readouterr().out, "announced before"
        installed.extend(packages)
        without.setattr(prerequisites, "find_missing", lambda some: [])

    without.setattr(os, "geteuid", lambda: 0)
    without.setattr(shutil, "which", lambda name: name)
    without.setattr(prerequisites, "install", install)
    prerequisites.main()
    assert installed == ["libnowhere4"]


def test_failed_installation_shows_the_command(without: pytest.MonkeyPatch) -> None:
    without.setattr(os, "geteuid", lambda: 0)
    without.setattr(shutil, "which", lambda name: name)
    without.setattr(prerequisites, "install", lambda packages: None)
    with pytest.raises(SystemExit, match="run `apt install libnowhere4`"):
        prerequisites.main()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with the Makefile and its checks, as in a clone without apt."""
    script = Path("notifyproject", "stack", "prerequisites.py")
    (tmp_path / script).parent.mkdir(parents=True)
    source = (ROOT / script).read_text()
    (tmp_path / script).write_text(source.replace("libcurl.so.4", "libnowhere.so.4"))
    for name in ("Makefile", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "bin").mkdir()
    for program in ("sh", "make"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program) or "")
    return tmp_path


def error_of(clone: Path, target: str, *, python: str) -> str:
    """Return the error output of ``make``, which must install nothing."""
    result = subprocess.run(
        ["make", target],
        cwd=clone,
        env={"PATH": str(clone / "bin"), "PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert not (clone / ".venv").exists()
    return result.stderr


@each_case("target", ["up", "test"])
def test_make_checks_before_it_installs(clone: Path, target: str) -> None:
    error = error_of(clone, target, python=sys.executable)
    assert "This machine lacks libnowhere.so.4 (for mongod)" in error


def test_make_reports_missing_python(clone: Path) -> None:
    error = error_of(clone, "up", python="python3")
    assert error.startswith("This machine lacks python3: run `apt install python3-venv`")


def test_make_reports_old_python(clone: Path) -> None:
    old = clone / "bin" / "old"
    start = "import sys; sys.version_info = (3, 10, 2); exec(sys.argv[1])"
    old.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{start}' \"$2\"\n")
    old.chmod(0o755)
    assert "Python 3.11 or later is needed, and old is 3.10" in error_of(clone, "up", python="old")


@pytest.fixture
def broken_program(tmp_path: Path) -> Path:
    """Return a valkey-server that requires a missing library."""
    binary = tmp_path / "broken_program"
    code = servers.valkey_binary().read_bytes()
    assert b"\0librt.so.1\0" in code
    binary.write_bytes(code.replace(b"\0librt.so.1\0", b"\0libqq.so.1\0"))
    binary.chmod(0o755)
    return binary


def test_program_with_a_missing_library_is_not_started(broken_program: Path) -> None:
    with pytest.raises(prerequisites.MissingLibraryError) as caught:
        prerequisites.check_libraries(program="mongod", binary=broken_program)
    assert str(caught.value) == (
        "This machine lacks libqq.so.1 (for mongod): install the package that has libqq.so.1."
    )


def test_package_of_a_known_library_is_named(
    broken_program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(prerequisites.PACKAGES, "libqq.so.1", "libqq1")
    with pytest.raises(prerequisites.MissingLibraryError, match="apt install libqq1"):
        prerequisites.check_libraries(program="mongod", binary=broken_program)


def test_program_with_its_libraries_may_start() -> None:
    prerequisites.check_libraries(program="valkey-server", binary=servers.valkey_binary())
