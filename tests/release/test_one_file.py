"""The command ``notify`` as one file runs without any other library, as the release builds it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from scripts.release import one_file

SECONDS = 1_800_000_000
TYPE = "name: Parcel lost\ncategory: transactional\nchannels: [email]\n"
SCHEMA = {"type": "object", "properties": {"parcel": {"type": "string"}}}


def needed(name: str, *extras: str) -> Iterator[Distribution]:
    """Yield a library, and those that it needs. Some may be repeated."""
    found = distribution(name)
    yield found
    for line in found.requires or ():
        required = Requirement(line)
        marker = required.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield from needed(required.name, *required.extras)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, of the libraries that are installed here."""
    installed = tmp_path_factory.mktemp("installed")
    for library in needed("notifyproject-client", "cli"):
        for each in library.files or ():
            target = installed / each
            if ".." not in each.parts and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(each.locate())
    content = one_file.packed_command(installed, seconds=SECONDS)
    assert one_file.packed_command(installed, seconds=SECONDS) == content
    path = tmp_path_factory.mktemp("file") / "notify.pyz"
    path.write_bytes(content)
    path.chmod(0o755)
    # Python without the libraries of this environment.
    python = path.with_name("python3")
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    return path


def run(command: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = f"{command.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return subprocess.run(
        [str(command), *words],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")},
        check=False,
        capture_output=True,
        text=True,
    )


def test_file_runs_alone_with_native_code_too(command: Path, tmp_path: Path) -> None:
    done = run(command, tmp_path, "init", "parcel_lost")
    assert (done.returncode, "type.yaml: written" in done.stdout) == (0, True), done.stderr
    assert run(command, tmp_path, "lint").returncode == 0
    folder = tmp_path / "notify" / "types" / "parcel_lost"
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "data.json").write_text('{"parcel": 77}')
    done = run(command, tmp_path, "validate", "parcel_lost", "data.json")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == 'data.json:1: parcel: 77 is not of type "string"\n'
    (unpacked,) = (tmp_path / "cache" / "notify").iterdir()
    assert not [*unpacked.glob("bin/*"), *unpacked.rglob("*.cpython-*.so")]


def test_first_runs_at_once_leave_one_folder(command: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = [*pool.map(lambda _: run(command, tmp_path, "--help"), range(4))]
    assert [each.returncode for each in done] == [0] * 4, [each.stderr for each in done]
    assert len([*(tmp_path / "cache" / "notify").iterdir()]) == 1


def test_cache_that_cannot_be_written_is_named(command: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    done = run(command, tmp_path, "--help")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("notify can't unpack itself: ")
