"""uv.lock and its exports are those of pyproject.toml, as ``make lock`` writes them."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from uv import find_uv_bin

from notifyproject import __version__
from tests.support.source import ROOT

EXPORTS = {
    "requirements.txt": ("--no-default-groups",),
    "requirements-tracing.txt": ("--only-group", "tracing"),
    "requirements-providers.txt": ("--only-group", "providers"),
    "requirements-sandbox.txt": ("--only-group", "sandbox"),
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment without the user's settings of uv, such as another index."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    return ours | {"XDG_CONFIG_HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache")}


def uv(*words: str, environment: dict[str, str]) -> str:
    result = subprocess.run(
        [find_uv_bin(), *words, "--offline", "--no-python-downloads"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"run `make lock`: {result.stderr}"
    return result.stdout


def test_version_in_the_image_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert __version__ == project["version"]


def test_lock_is_of_the_listed_dependencies(environment: dict[str, str]) -> None:
    uv("lock", "--check", environment=environment)


@pytest.mark.parametrize("name", EXPORTS)
def test_requirements_are_exported_from_the_lock(name: str, environment: dict[str, str]) -> None:
    words = ("export", "--frozen", "--no-header", *EXPORTS[name])
    assert (ROOT / name).read_text() == uv(*words, environment=environment), "run `make lock`"
