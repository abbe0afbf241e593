"""What a server would be told by ``check --deploy``, and what must never be in the repository."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import LIMIT

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = re.search(
    r"^PRODUCTION := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
)
SECRETS = {
    "a private key": r"PRIVATE KEY-----(\\n)?[A-Za-z0-9+/=]{40}|^MI[IG][A-Za-z0-9+/]{60}",
    "a key of AWS": r"\bAKIA[0-9A-Z]{16}\b",
    "a key of Google": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "a key of SendGrid": r"\bSG\.[\w-]{22}\.[\w-]{43}\b",
    "a token of GitHub": r"\bgh[pousr]_[A-Za-z0-9]{36}\b",
    "a token of Slack": r"\bxox[abprs]-[0-9A-Za-z-]{20,}",
    "a token of Meta": r"\bEAA[A-Za-z0-9]{60,}\b",
    "a key of this service": r"\bntf_(?:test_)?[a-z0-9]{10}_[A-Za-z0-9_-]{32,}",
}


def production() -> dict[str, str]:
    """Return the environment that `make lint` checks settings with."""
    assert PRODUCTION is not None
    words = PRODUCTION[1].replace("\\\n", " ").split()
    return dict(word.split("=", 1) for word in words)


def check(**changes: str) -> subprocess.CompletedProcess[str]:
    """Run Django's checks as on a server."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**kept, **production(), **changes},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def test_a_server_that_is_set_up_well_has_nothing_to_be_told() -> None:
    done = check()
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues" in done.stdout


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("FIELD_ENCRYPTION_KEYS", "", "Set FIELD_ENCRYPTION_KEYS in the environment"),
        ("FIELD_ENCRYPTION_KEYS", "a:c2hvcnQ=", "has fewer than 32 bytes"),
        ("ADMIN_REQUIRE_OTP", "false", "staff sign in with a password alone"),
    ],
)
def test_a_server_that_is_not_is_told_why(name: str, value: str, said: str) -> None:
    done = check(**{name: value})
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize("what", SECRETS)
def test_no_real_secret_is_in_the_repository(what: str) -> None:
    listed = subprocess.run(
        ["git", "grep", "-lIP", "-e", SECRETS[what]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert listed.stdout.split() == []
