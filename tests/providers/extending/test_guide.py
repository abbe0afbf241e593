"""The channel and the provider of docs/guides/extend.md need no other file of the service."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from tests.support.subprocess import environment, python
from tests.support.waiting import LIMIT

ROOT = Path(django_settings.BASE_DIR)
PAGE = (ROOT / "docs" / "guides" / "extend.md").read_text(encoding="utf-8")
MOST_LINES = 120
BLOCKS = re.findall(r"`([\w/]+\.py)`[^`]*\n\n```python\n(.*?)```", PAGE, re.DOTALL)
TEMPLATES = re.findall(r"`(templates/[\w/.]+)`, with `([^`]+)`", PAGE)
MORE = {
    "providers/loft/variables.py": """
from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    \"\"\"The account with Loft.\"\"\"

    heading = "Loft"
    provider = "loft"
    channel = "pigeon"
    rate = 20

    LOFT_KEY: str = declare(kinds.token(min_length=3), "", "key of the account", empty="no Loft")
    LOFT_URL: str = declare(kinds.url(Plain.PRIVATE), "https://loft.example", "address of the API")
""",
    "providers/aviary/__init__.py": """
from dataclasses import replace

from ..loft import PROVIDER as LOFT
from ..spec import WebhookSpec


def build(account):
    from .provider import Aviary

    values = account.values
    return Aviary(key=values.LOFT_KEY, base_url=values.LOFT_URL, name=account.name)


PROVIDER = replace(
    LOFT,
    name="aviary",
    label="Aviary",
    build=build,
    webhook=WebhookSpec(content="a landing"),
)
""",
    "providers/aviary/provider.py": """
import hmac
import json
from dataclasses import replace
from datetime import datetime

from ..contract import (
    InvalidSignatureError, Receipt, ReceiptKind, WebhookReply, WebhookResult
)
from ..loft.provider import Loft


class Aviary(Loft):
    def parse_webhook(self, request):
        signature = hmac.digest(self.key.encode(), request.url.encode(), "sha256").hex()
        if request.headers.get("x-signature") != signature:
            raise InvalidSignatureError("the signature is wrong")
        logged = request.raw.replace(b"Dear Ada", b"")
        reply = WebhookReply(body="Got it")
        return replace(self.parse_logged(logged), logged=logged.decode(), reply=reply)

    def parse_logged(self, raw):
        landing = json.loads(raw)
        kind = ReceiptKind.BOUNCED if landing["is_lost"] else ReceiptKind.DELIVERED
        receipt = Receipt(
            reference=landing["id"], provider_id=None, kind=kind, reason=None,
            at=datetime.fromisoformat(landing["at"]), event_id=landing["id"],
            address=landing["to"],
        )
        return WebhookResult(receipts=(receipt,))
""",
}
"""Variables, and a provider like that of the guide that signs its calls and expects a response."""
FILES = {**dict(BLOCKS), **dict(TEMPLATES), **MORE}
SEPARATE = "new_channel"
"""The name of a database of its own, since another channel has other choices in its models."""


PYTEST = """
import sys

from tests.support import overlay
import pytest

sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """Return a folder with the files of the guide."""
    for name, text in FILES.items():
        assert not (ROOT / name).exists(), name
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_page_is_short_and_has_each_file() -> None:
    assert PAGE.count("\n") < MOST_LINES
    assert [name for name, _ in BLOCKS] == [
        "domain/channels/pigeon.py",
        "providers/loft/__init__.py",
        "providers/loft/provider.py",
    ]
    for place in re.findall(r"`([\w/]+\.(?:py|html|txt))`", PAGE):
        assert (ROOT / place).exists() or place in FILES, place


@pytest.mark.usefixtures("db")
def test_new_channel_is_like_any_other(overlay: Path) -> None:
    """Run the tests of new_channel.py in a process that has the files on its path."""
    own = environment()
    uri, _, query = own["MONGODB_URI"].partition("?")
    options = "-q -n 0 -p no:cacheprovider tests/providers/extending/new_channel.py"
    done = subprocess.run(
        [sys.executable, "-c", PYTEST, *options.split()],
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if "XDIST" not in name},
            **own,
            "MONGODB_URI": f"{uri}_{SEPARATE}?{query}",
            "OVERLAY": str(overlay),
        },
        capture_output=True,
        text=True,
        timeout=5 * LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]


PROGRAM = """
import json
import sys

from tests.support import overlay

heavy = {"google", "pycurl", "providers.sendgrid.provider", "providers.loft.provider"}
from providers import registry

loaded = sorted(heavy & sys.modules.keys())
import django

django.setup()
from django.conf import settings
from django.urls import NoReverseMatch, reverse

from console.webhook_log import ProviderFilter
from providers.discovery import SPECS
from providers.labels import provider_name

settings.LOFT_URL, settings.LOFT_KEY = "http://loft.test", "key"


def route(name):
    try:
        return reverse(f"webhook-{name}")
    except NoReverseMatch:
        return None


print(json.dumps({
    "loaded": loaded,
    "labels": [provider_name("loft"), provider_name("aviary")],
    "routes": [route(name) for name in ("loft", "aviary", "smtp", "sendgrid")],
    "filter": [name for name, _ in ProviderFilter.options],
    "checked": sorted(name for name, spec in SPECS.items() if spec.check),
}))
"""


def test_packages_are_light_and_found(overlay: Path) -> None:
    found = json.loads(python("-c", PROGRAM, OVERLAY=str(overlay)))
    assert found["loaded"] == []
    assert found["labels"] == ["Loft", "Aviary"]
    assert found["routes"] == [None, "/webhooks/aviary", None, "/webhooks/sendgrid"]
    assert "aviary" in found["filter"]
    assert "loft" not in found["filter"]
    assert "loft" not in found["checked"]
