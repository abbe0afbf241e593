"""A commit is compared with the files, the tags, and the API of its repository."""

import shutil
from datetime import date
from pathlib import Path

import pytest
import yaml

from scripts.release import checks, migrations, versions
from scripts.release.repository import ReleaseError, Repository, run
from scripts.release.versions import Version
from tests.support.source import ROOT

PREVIOUS, NEXT = Version(1, 0, 0), Version(1, 1, 0)
TODAY = date(2027, 1, 31)
BUNDLE = "static/inbox/0.1.0.js"
UPGRADING = "docs/upgrading/1.1.0.md"
OPERATION = {"get": {"operationId": "listNotes", "responses": {}}}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Return a repository with the version before, and a commit of the one to be released."""
    root = tmp_path / "repository"
    for name in versions.PLACES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    git = Repository(root)
    run("git", "init", "--quiet", "--initial-branch", "main", root, cwd=tmp_path)
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.com")):
        git.git("config", name, value)
    versions.write(root, PREVIOUS)
    _write(root, BUNDLE, "bell()")
    _write(root, checks.OPENAPI, yaml.safe_dump({"paths": {"/notes": OPERATION}}))
    _commit(git, "The first")
    git.git("tag", PREVIOUS.tag)
    versions.write(root, NEXT)
    _write(root, "CHANGELOG.md", "## [Unreleased]\n\n## [1.1.0] - 2027-01-31\n\n- A bell.\n")
    _write(root, UPGRADING, "# Upgrade to 1.1.0\n")
    _commit(git, "The next")
    return git


def _write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def _commit(git: Repository, subject: str) -> None:
    git.git("add", "--all")
    git.git("commit", "--quiet", "--no-verify", "--message", subject)


def problems(git: Repository, version: Version = NEXT) -> list[str]:
    previous = versions.before(version, git.tags())
    return list(checks.problems(git, version=version, previous=previous, today=TODAY))


def test_commit_of_a_version_has_no_problem(repository: Repository) -> None:
    assert versions.before(NEXT, repository.tags()) == PREVIOUS
    assert problems(repository) == []
    assert checks.changes_of_the_api(repository, previous=PREVIOUS) == []


def test_commit_may_have_its_own_tag_already(repository: Repository) -> None:
    repository.git("tag", NEXT.tag)
    assert problems(repository) == []
    _write(repository.root, "README.md", "More")
    _commit(repository, "One more")
    assert problems(repository) == ["v1.1.0 is a tag of another commit."]


def test_change_that_is_not_committed_is_named(repository: Repository) -> None:
    _write(repository.root, "README.md", "More")
    assert problems(repository) == ["Commit or remove these first: README.md."]


def test_file_that_states_another_version_is_named(repository: Repository) -> None:
    path = repository.root / "clients" / "typescript" / "package-lock.json"
    path.write_text(path.read_text().replace('"version": "1.1.0"', '"version": "1.0.0"', 1))
    _commit(repository, "Half")
    (found,) = problems(repository)
    assert "package-lock.json states 1.0.0 and 1.1.0: run `make version VERSION=1.1.0`" in found


def test_version_has_a_page_about_its_upgrade_unless_it_is_a_patch(repository: Repository) -> None:
    (repository.root / UPGRADING).unlink()
    versions.write(repository.root, Version(1, 1, 1))
    text = "## [Unreleased]\n\n## [1.1.1] - 2027-01-31\n\n- A bell.\n"
    _write(repository.root, "CHANGELOG.md", text)
    _commit(repository, "A patch")
    assert problems(repository, Version(1, 1, 1)) == []
    versions.write(repository.root, NEXT)
    _write(repository.root, "CHANGELOG.md", text.replace("1.1.1", "1.1.0"))
    _commit(repository, "No page")
    (found,) = problems(repository)
    assert found.startswith(f"{UPGRADING} is missing")


def test_file_that_pages_load_by_its_hash_stays(repository: Repository) -> None:
    _write(repository.root, "static/inbox/0.2.0.js", "horn()")
    _commit(repository, "Another bundle")
    assert problems(repository) == []
    _write(repository.root, BUNDLE, "horn()")
    _commit(repository, "The same bundle")
    (found,) = problems(repository)
    assert found.startswith(f"{BUNDLE} is another file")
    (repository.root / BUNDLE).unlink()
    _commit(repository, "No bundle")
    assert problems(repository) == [found]


def test_api_is_compared_with_that_of_the_previous_tag(repository: Repository) -> None:
    _write(repository.root, checks.OPENAPI, yaml.safe_dump({"paths": {}}))
    _commit(repository, "No notes")
    (change,) = checks.changes_of_the_api(repository, previous=PREVIOUS)
    assert str(change) == "GET /notes: It is removed."


def test_build_has_what_is_committed_alone(repository: Repository, tmp_path: Path) -> None:
    _write(repository.root, ".data/local-credentials.json", "secret")
    repository.check_out(tmp_path / "build", commit=repository.commit())
    assert not (tmp_path / "build" / ".data").exists()
    assert Repository(tmp_path / "build").commit() == repository.commit()


PYTHON = """#!/bin/sh
echo "$(basename "$PWD") $*" >>"$MIGRATIONS_LOG"
test "$*" != "$MIGRATIONS_FAIL" || { echo "no such index"; exit 1; }
"""
"""Takes the place of a version's Python, and notes what it is asked."""


@pytest.fixture
def two_versions(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give both versions a Python that notes what it is asked, and return its notes."""
    _write(repository.root, "python", PYTHON)
    (repository.root / "python").chmod(0o755)
    recipe = "mkdir -p .venv/bin && ln -s ../../python .venv/bin/python"
    _write(repository.root, "Makefile", f".venv/local:\n\t{recipe}\n")
    _write(repository.root, ".gitignore", ".venv\n.data\n")
    _commit(repository, "Run")
    repository.git("tag", "--force", PREVIOUS.tag)
    run("make", ".venv/local", cwd=repository.root)
    log = tmp_path / "migrations.log"
    monkeypatch.setenv("MIGRATIONS_LOG", str(log))
    monkeypatch.setenv("MIGRATIONS_FAIL", "")
    return log


def test_database_goes_forward_and_back(repository: Repository, two_versions: Path) -> None:
    migrations.check(repository, previous=PREVIOUS)
    asked = ["manage.py migrate --no-input --verbosity 0", "manage.py migrate --check"]
    order = ("previous", "repository", "previous", "repository")
    assert two_versions.read_text().splitlines() == [
        *(f"{root} {words}" for root in order for words in asked),
        "repository manage.py check_indexes",
    ]
    assert list((repository.root / migrations.FOLDER).iterdir()) == []


def test_version_that_refuses_the_database_is_shown(
    repository: Repository, two_versions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIGRATIONS_FAIL", "manage.py check_indexes")
    with pytest.raises(ReleaseError, match=r"check_indexes` failed in .*\nno such index"):
        migrations.check(repository, previous=PREVIOUS)
    assert list((repository.root / migrations.FOLDER).iterdir()) == []
