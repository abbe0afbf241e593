"""Files in the image, and files that git ignores: nothing secret, nothing local."""

import os
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from tests.support.docker_context import copied, is_excluded, patterns
from tests.support.source import ROOT, SERVICE

PATTERNS = patterns((ROOT / ".dockerignore").read_text())
NAMED = {"manage.py", "requirements.txt", "requirements-tracing.txt"}
FOLDERS = (*SERVICE, "static", "templates")
SECRETS = (
    *(".env", ".env.local", ".env.production", "notifyproject/.env", "docs/.env"),
    *(".data/local-credentials.json", ".data/memory.json", ".data/sandbox/sendgrid.pem"),
    *("fcm_service_account.json", "notifyproject/my-service-account.json", "apns.key"),
    *("my-app-firebase-adminsdk-x1-0a.json", "access/tls.pem", "static/tls.key"),
)
"""Secret files in a checkout: copies of .env.example, and credentials issued by providers."""
LOCAL = (
    *(".venv/bin/python", ".git/config", ".pytest_cache/README.md", ".mypy_cache/3.11/a.json"),
    *("access/__pycache__/keys.cpython-311.pyc", "tests/conftest.py", "bench/__main__.py"),
    *("clients/python/README.md", "notes.txt", "dump.archive", "notifications/dump.json"),
    *("templates/old.html.orig", "static/console/.DS_Store", "sandbox/__main__.py"),
)
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "notifyproject.settings.production",
    "SECRET_KEY": "build",
    "ALLOWED_HOSTS": "build",
    "MONGODB_URI": "mongodb://build/build",
    "REDIS_URL": "redis://build",
    "PUBLIC_URL": "https://build",
    "INBOX_SIGNING_KEY": "only-for-starting-the-programs-once",
    "FIELD_ENCRYPTION_KEYS": "build:b25seS1mb3ItY29sbGVjdGluZy1zdGF0aWMtZmlsZXM=",
}
"""Required to start. Nothing is connected to."""
STARTS = """
import manage, django
django.setup()
from django.core.management import call_command
call_command("collectstatic", interactive=False, verbosity=0)
import notifyproject.wsgi, notifyproject.asgi, notifyproject.celery
notifyproject.celery.app.loader.import_default_modules()
"""
"""The build step of the image, and the imports of web, stream, worker, and beat."""


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-c", "safe.directory=*", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def wanted() -> set[str]:
    """Return the tracked files that the image is built from."""
    listed = git("ls-files", *FOLDERS)
    assert listed.returncode == 0, listed.stderr
    return {path for path in listed.stdout.splitlines() if (ROOT / path).exists()} | NAMED


@pytest.mark.parametrize("path", SECRETS)
def test_git_ignores_secret_files(path: str) -> None:
    assert git("check-ignore", "--quiet", "--no-index", path).returncode == 0


def test_git_ignores_no_tracked_file() -> None:
    ignored = git("ls-files", "--cached", "--ignored", "--exclude-standard")
    assert (ignored.returncode, ignored.stdout) == (0, "")
    assert git("check-ignore", "--quiet", "--no-index", ".env.example").returncode == 1


@pytest.mark.parametrize("path", [*SECRETS, *LOCAL])
def test_image_excludes_secret_and_local_files(path: str) -> None:
    assert is_excluded(PurePosixPath(path), PATTERNS)


@pytest.mark.parametrize("every_folder", [True, False])
def test_image_contains_exactly_the_service_files(tmp_path: Path, every_folder: bool) -> None:
    for path in (*wanted(), *SECRETS, *LOCAL, *git("ls-files").stdout.splitlines()):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert copied(tmp_path, PATTERNS, every_folder=every_folder) == wanted()


def test_image_files_are_enough_to_start(tmp_path: Path) -> None:
    for path in copied(ROOT, PATTERNS, every_folder=False):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    kept = {n: os.environ[n] for n in ("PATH", "PYTHONPYCACHEPREFIX") if n in os.environ}
    result = subprocess.run(
        [sys.executable, "-c", STARTS],
        cwd=tmp_path,
        env={**kept, "PYTHONDONTWRITEBYTECODE": "1", **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / ".data" / "static").is_dir()
