"""What a commit must be to be a release."""

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from . import api_changes, changelog, versions
from .repository import Repository
from .schema_pairs import Change
from .versions import Version

OPENAPI = "clients/python/openapi.yaml"
PINNED = ("static/inbox", "static/push", "static/push-button")
"""Files with a version in their address, which pages load by their hash."""


def problems(
    repository: Repository, *, version: Version, previous: Version | None, today: date
) -> Iterator[str]:
    """Yield why a commit isn't the release of a version, except for its API."""
    if changed := repository.changed_files():
        yield f"Commit or remove these first: {', '.join(line[3:] for line in changed)}."
    for name, found in versions.stated(repository.root).items():
        if found != {str(version)}:
            states = " and ".join(sorted(found)) or "no version"
            yield f"{name} states {states}: run `make version VERSION={version}`, and commit."
    text = (repository.root / "CHANGELOG.md").read_text("utf-8")
    yield from changelog.problems(text, version=version, today=today)
    page = upgrading_page(version)
    if page is not None and not (repository.root / page).is_file():
        yield f"{page} is missing: it says what to do before and after the upgrade."
    is_tagged = version.tag in repository.git("tag").splitlines()
    if is_tagged and repository.commit(version.tag) != repository.commit():
        yield f"{version.tag} is a tag of another commit."
    if previous is not None:
        then, now = (repository.files(*PINNED, tag=each) for each in (previous.tag, "HEAD"))
        yield from replaced_files(then, now)


def upgrading_page(version: Version) -> str | None:
    """Return the page about the upgrade to a version. A patch version has none."""
    return None if version.patch else f"docs/upgrading/{version}.md"


def replaced_files(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield which files with a version in their address aren't what they were."""
    for path, content in then.items():
        if now.get(path) != content:
            yield f"{path} is another file. Pages load it by its hash: a change needs a new name."


def changes_of_the_api(repository: Repository, *, previous: Version) -> list[Change]:
    """Return how the API changed since a version."""
    before = repository.text(OPENAPI, tag=previous.tag)
    after = (repository.root / OPENAPI).read_text("utf-8")
    return api_changes.compare(_document(before), _document(after))


def _document(text: str) -> Any:
    return yaml.load(text, yaml.CSafeLoader)


def local_python(root: Path) -> Path:
    """Return the Python of a checkout's virtual environment."""
    return root / ".venv" / "bin" / "python"
