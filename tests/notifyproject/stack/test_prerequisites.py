"""What a machine must have: the list is true, complete, in the README, and looked at first."""

import os
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

ROOT = Path(settings.BASE_DIR)
FOR_A_CLONE = {"git", "ca-certificates", "make"}
IN_EVERY_DEBIAN = {"libssl3", "liblzma5", "libgcc-s1", "libstdc++6"}
"""Packages that apt, dpkg and Python itself need: no README has to name them."""
GLIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2")
NOWHERE = Prerequisite(
    kind=Kind.LIBRARY, name="libnowhere.so.4", package="libnowhere4", needed_by="mongod"
)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Have mongod need a library that is nowhere, on a Linux its wheel is made for."""
    monkeypatch.setattr(prerequisites, "MONGOD", (NOWHERE,))
    monkeypatch.setattr(prerequisites.platform, "machine", lambda: "x86_64")
    monkeypatch.delenv("MONGODB_URI", raising=False)
    monkeypatch.setattr(sys, "argv", ["prerequisites.py", "up"])
    return monkeypatch


def linked(binary: Path) -> dict[str, Path]:
    """Return the libraries a binary is linked with, themselves or by another of them."""
    said = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=True).stdout
    return {name: Path(path) for name, path in re.findall(r"^\s*(\S+) => (/\S+)", said, re.M)}


def brought(binary: Path, names: Iterable[str]) -> set[str]:
    """Return those libraries, with all that they are linked with."""
    paths = linked(binary)
    found = {name for name in (*names, *GLIBC) if name in paths}
    return found | {other for name in found for other in linked(paths[name])}


@pytest.mark.parametrize("program", ["mongod", "valkey-server", "node"])
def test_the_libraries_of_an_installed_program_are_declared(program: str) -> None:
    node = prerequisites.playwright_binary()
    assert node is not None
    binary, declared = {
        "mongod": (servers.mongod_binary(), MONGOD),
        "valkey-server": (servers.valkey_binary(), ()),
        "node": (node, NODE),
    }[program]
    names = {one.name for one in declared}
    assert names <= linked(binary).keys(), "what is declared is needed"
    assert linked(binary).keys() <= brought(binary, names), "what is needed is declared"


def test_this_machine_has_what_the_tests_need() -> None:
    assert prerequisites.find_missing(prerequisites.prerequisites_for(Purpose.TEST)) == []


def test_the_readme_names_what_a_bare_machine_lacks() -> None:
    first, second = re.findall(r"^    apt install (.+)$", (ROOT / "README.md").read_text(), re.M)
    up = {one.package for one in (*MONGOD, prerequisites.PIP)} - IN_EVERY_DEBIAN
    test = {one.package for one in (*NODE, prerequisites.BROWSER)} - IN_EVERY_DEBIAN
    assert set(first.split()) == FOR_A_CLONE | up
    assert set(second.split()) == test


def test_a_database_of_ones_own_needs_no_library(without: pytest.MonkeyPatch) -> None:
    assert NOWHERE in prerequisites.prerequisites_for(Purpose.UP)
    without.setenv("MONGODB_URI", "mongodb://db.example.com/notify")
    assert NOWHERE not in prerequisites.prerequisites_for(Purpose.UP)


@pytest.mark.parametrize(
    ("programs", "command"),
    [
        ({"apt-get"}, "run `apt install libnowhere4` as root"),
        ({"apt-get", "sudo"}, "run `sudo apt install libnowhere4`"),
        (set(), "install it with your system's package manager; Debian's packages: libnowhere4"),
    ],
)
def test_somebody_who_is_not_root_is_told_one_command(
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


def test_root_has_it_installed_by_apt(
    without: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed: list[str] = []

    def install(packages: list[str]) -> None:
        assert "apt installs libnowhere4" in capsys.readouterr().out, "said beforehand"
        installed.extend(packages)
        without.setattr(prerequisites, "find_missing", lambda some: [])

    without.setattr(os, "geteuid", lambda: 0)
    without.setattr(shutil, "which", lambda name: name)
    without.setattr(prerequisites, "install", install)
    prerequisites.main()
    assert installed == ["libnowhere4"]


def test_root_whose_apt_does_not_have_it_is_told_too(without: pytest.MonkeyPatch) -> None:
    without.setattr(os, "geteuid", lambda: 0)
    without.setattr(shutil, "which", lambda name: name)
    without.setattr(prerequisites, "install", lambda packages: None)
    with pytest.raises(SystemExit, match="run `apt install libnowhere4`"):
        prerequisites.main()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Give a clone's Makefile, with what it looks at first, where there is no apt."""
    script = Path("notifyproject", "stack", "prerequisites.py")
    (tmp_path / script).parent.mkdir(parents=True)
    source = (ROOT / script).read_text()
    (tmp_path / script).write_text(source.replace("libcurl.so.4", "libnowhere.so.4"))
    for name in ("Makefile", "requirements-local.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "bin").mkdir()
    for program in ("sh", "make"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program) or "")
    return tmp_path


def error_of(clone: Path, target: str, *, python: str) -> str:
    """Return what ``make`` says before it gives up, having installed nothing."""
    said = subprocess.run(
        ["make", target],
        cwd=clone,
        env={"PATH": str(clone / "bin"), "PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode != 0
    assert not (clone / ".venv").exists()
    return said.stderr


@pytest.mark.parametrize("target", ["up", "test"])
def test_make_looks_before_it_installs_anything(clone: Path, target: str) -> None:
    error = error_of(clone, target, python=sys.executable)
    assert "This machine lacks libnowhere.so.4 (for mongod)" in error


def test_make_says_that_there_is_no_python(clone: Path) -> None:
    error = error_of(clone, "up", python="python3")
    assert error.startswith("This machine lacks python3: run `apt install python3-venv`")


def test_make_says_that_python_is_too_old(clone: Path) -> None:
    old = clone / "bin" / "old"
    start = "import sys; sys.version_info = (3, 10, 2); exec(sys.argv[1])"
    old.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{start}' \"$2\"\n")
    old.chmod(0o755)
    assert "Python 3.11 or later is needed, and old is 3.10" in error_of(clone, "up", python="old")


@pytest.fixture
def crippled(tmp_path: Path) -> Path:
    """Give a valkey-server that needs a library which is nowhere."""
    binary = tmp_path / "crippled"
    code = servers.valkey_binary().read_bytes()
    assert b"\0librt.so.1\0" in code
    binary.write_bytes(code.replace(b"\0librt.so.1\0", b"\0libqq.so.1\0"))
    binary.chmod(0o755)
    return binary


def test_an_installed_program_whose_library_is_missing_is_not_started(crippled: Path) -> None:
    with pytest.raises(prerequisites.MissingLibraryError) as caught:
        prerequisites.check_libraries(program="mongod", binary=crippled)
    assert str(caught.value) == (
        "This machine lacks libqq.so.1 (for mongod): install the package that has libqq.so.1."
    )


def test_the_package_of_a_library_we_know_is_named(
    crippled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(prerequisites.PACKAGES, "libqq.so.1", "libqq1")
    with pytest.raises(prerequisites.MissingLibraryError, match="apt install libqq1"):
        prerequisites.check_libraries(program="mongod", binary=crippled)


def test_a_program_that_has_its_libraries_may_start() -> None:
    prerequisites.check_libraries(program="valkey-server", binary=servers.valkey_binary())
