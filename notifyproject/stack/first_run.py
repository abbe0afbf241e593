"""First run of a local stack: prints credentials and URLs, and sends the examples."""

import argparse
import io
import json
import os
import secrets
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import django
import urllib3

from ..settings.environment import BASE_DIR, CREDENTIALS_FILE
from . import examples
from .prerequisites import CONTAINERS

ADMIN = "admin"
CLIENT = "local"
START_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """Credentials of a local stack; the fields of ``.data/local-credentials.json``."""

    admin: dict[str, str]
    api_key: str
    web: str
    sandbox: str


def main() -> None:
    """Print the greeting, and at the first start run the examples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--web", required=True)
    parser.add_argument("--sandbox", required=True)
    parser.add_argument("--no-examples", action="store_true")
    arguments = parser.parse_args()
    django.setup()
    pool = urllib3.PoolManager()
    _wait_for(pool, f"{arguments.web}/healthz")
    is_new = not CREDENTIALS_FILE.exists()
    credentials = _load_credentials(arguments.web, arguments.sandbox)
    create_roles()
    _print_greeting(credentials, is_new=is_new)
    if is_new and not arguments.no_examples:
        web, key, sandbox = credentials.web, credentials.api_key, credentials.sandbox
        _run_examples(examples.API(base_url=web, key=key, pool=pool, sandbox=sandbox))
    if is_new:
        _print_next_steps(credentials)


def _load_credentials(web: str, sandbox: str) -> Credentials:
    if CREDENTIALS_FILE.exists():
        stored = json.loads(CREDENTIALS_FILE.read_text())
        credentials = Credentials(**{**stored, "web": web, "sandbox": sandbox})
    else:
        credentials = Credentials(
            admin=_create_admin(), api_key=_create_api_key(), web=web, sandbox=sandbox
        )
    _write(CREDENTIALS_FILE, json.dumps(asdict(credentials), indent=2))
    return credentials


def _create_admin() -> dict[str, str]:
    from django.contrib.auth import get_user_model

    password = secrets.token_urlsafe(12)
    user, _ = get_user_model().objects.get_or_create(
        username=ADMIN, defaults={"is_staff": True, "is_superuser": True}
    )
    user.set_password(password)
    user.save()
    return {"username": ADMIN, "password": password}


def create_roles() -> None:
    """Create the roles if there are none; changed roles stay."""
    from django.contrib.auth.models import Group
    from django.core.management import call_command

    if not Group.objects.exists():
        call_command("create_roles", stdout=io.StringIO())


def _create_api_key() -> str:
    from django.core.management import call_command

    key = io.StringIO()
    options = ("--scopes", "all", "--replace-keys")
    call_command("create_api_client", CLIENT, *options, stdout=key, stderr=io.StringIO())
    return key.getvalue().strip()


def _print_greeting(credentials: Credentials, *, is_new: bool) -> None:
    _print(
        "",
        f"  Admin    {credentials.web}/admin/",
        f"  API      {credentials.web}/api/docs",
        f"  Outbox   {credentials.sandbox}/  (messages that the sandbox received)",
        f"  Inbox    {credentials.web}/demo/inbox  (two recipients, and a button that sends)",
    )
    if is_new:
        _print(
            "",
            f"  Log in as {credentials.admin['username']} "
            f"with the password {credentials.admin['password']}",
            f"  API key {credentials.api_key}",
            "  Both are also in .data/local-credentials.json and are not shown again.",
            "",
            "  Add staff, each with a role: viewer (reads), support (finds notifications, sees",
            "  masked addresses, resends one), operator (bulk operations, pauses providers), admin",
            f"  (everything): {credentials.web}/admin/access/staffuser/add/",
        )
    _print("")


def _run_examples(api: examples.API) -> None:
    _print("Sending some examples through the API …", "")
    started = time.monotonic()
    outcomes = examples.send_all(api, examples.load(datetime.now(UTC)))
    is_table_printed = False
    for latest in examples.follow(api, outcomes, stop=lambda: False):
        outcomes = latest
        is_nearly_done = sum(o.is_as_expected for o in outcomes) >= len(outcomes) - 1
        if is_nearly_done and not is_table_printed and not all(o.is_as_expected for o in outcomes):
            _print(examples.format_table(outcomes), "", "One is still being retried …", "")
            is_table_printed = True
    _print(examples.format_table(outcomes), "")
    unexpected = [o.example.name for o in outcomes if not o.is_as_expected]
    summary = f"Not as expected: {', '.join(unexpected)}." if unexpected else "All as expected."
    _print(f"{summary} ({time.monotonic() - started:.0f} s)", "")


def _print_next_steps(credentials: Credentials) -> None:
    manage = ".venv/bin/python manage.py"
    if not (BASE_DIR / ".venv").exists():  # In a container
        manage = f"{CONTAINERS} exec stack python manage.py"
    notify = f"{manage} notify"
    _print(
        "To try next, in another terminal of this folder:",
        "",
        "  1. Let an email bounce, and read why it failed:",
        f"     {notify} --type mfa_code --email bounce@example.com --data code=123456 --wait",
        f"     {credentials.web}/admin/notifications/failednotification/",
        "  2. See an inbox get a message while you look:",
        f"     {credentials.web}/demo/inbox",
        "  3. Send from an app of your own, by curl or Python:",
        "     README.md, Send a notification",
        "",
    )


def _wait_for(pool: urllib3.PoolManager, url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if pool.request("GET", url, timeout=2.0, retries=False).status == HTTPStatus.OK:
                return
        except urllib3.exceptions.HTTPError:
            pass
        if time.monotonic() > deadline:
            raise SystemExit(f"{url} does not respond")
        time.sleep(0.2)


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
    temporary.replace(path)


def _print(*lines: str) -> None:
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
