"""Checks of the settings, and what the wizard completes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from django.core import checks

from domain.time import utc_now
from notifyproject.settings.safety import Plain, UrlRule, url_problem

from .. import setting_checks
from ..spec import Account

_TOKEN_URL = UrlRule(plain=Plain.PRIVATE, schemes=("https", "http"))
_PROJECT = re.compile(r"[a-z0-9][a-z0-9.:-]{2,60}[a-z0-9]", re.ASCII)


def check_settings(account: Account) -> Iterator[checks.CheckMessage]:
    """Report invalid settings of Firebase."""
    yield from setting_checks.base_url(account.values, "FCM_URL", number=8)
    project = account.values.FCM_PROJECT_ID
    if project and not _PROJECT.fullmatch(project):
        hint = "Use the project ID, such as my-shop-1a2b3; if empty, the service account's own."
        yield setting_checks.error(f"FCM_PROJECT_ID is not a project ID: {project!r}.", hint, 11)
    yield from _check_account(account, "FCM_CREDENTIALS", 12, needs_project=not project)
    yield from _check_account(account, "SANDBOX_FCM_CREDENTIALS", 13, needs_project=True)


def _check_account(
    account: Account, name: str, number: int, *, needs_project: bool
) -> Iterator[checks.CheckMessage]:
    if not (source := getattr(account.values, name)):
        return
    # Imported here: Google's libraries take half a second, and few installations need them.
    from . import credentials

    try:
        found = credentials.read_service_account(source)
        found.assertion(now=utc_now())
    except credentials.InvalidCredentialsError as error:
        hint = "Set the path of Google's service account JSON, or the JSON itself."
        yield setting_checks.error(f"{name}: {error}", hint, number)
    else:
        if needs_project and not found.project_id:
            hint = "Set FCM_PROJECT_ID."
            yield setting_checks.error(f"{name} names no project.", hint, number)


def check_server(account: Account) -> Iterator[checks.CheckMessage]:
    """Report service accounts that are presented without TLS."""
    for name in ("FCM_CREDENTIALS", "SANDBOX_FCM_CREDENTIALS"):
        # An unreadable account is another check's problem.
        url = _token_url(getattr(account.values, name))
        if url is not None and (problem := url_problem(_TOKEN_URL, url)):
            yield checks.Error(f"token_uri of {name} {problem}.", id="notifyproject.E010")


def _token_url(source: str) -> str | None:
    if not source:
        return None
    try:
        text = source if source.lstrip().startswith("{") else Path(source).read_text()
        url = json.loads(text)["token_uri"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url if isinstance(url, str) else None
