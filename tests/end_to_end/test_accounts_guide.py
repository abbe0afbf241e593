"""The guide of accounts: its environments are valid, and do what it says."""

import re
import textwrap
from typing import Any

from bson import ObjectId

from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from notifications.receipts import webhook_log
from providers.accounts import every_account
from providers.contract import Receipt, ReceiptKind
from providers.registry import providers_for
from tests.support.accounts import declare
from tests.support.factories import notifications as factories
from tests.support.fakes import socket_server
from tests.support.source import ROOT

PAGE = (ROOT / "docs" / "guides" / "accounts.md").read_text(encoding="utf-8")
BLOCKS = [
    dict(line.split("=", 1) for line in textwrap.dedent(block).split())
    for block in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)
]
TAKEN = socket_server.response(202, b"", "X-Message-Id: sg-1")
EMAIL = Channel.EMAIL


def test_first_example_declares_what_the_page_says(settings: Any) -> None:
    declare(settings, **BLOCKS[0])
    assert [provider.name for provider in providers_for(EMAIL)] == ["mail_eu", "mail_us", "smtp"]
    paths = {account.name: account.webhook_path for account in every_account()}
    for name in ("mail_eu", "sendgrid"):
        assert f"`{paths[name]}`" in PAGE


def test_account_is_changed_without_a_gap(db: None, broker: Any, settings: Any) -> None:
    old, new = socket_server.KeepAlive(TAKEN), socket_server.KeepAlive(TAKEN)
    with socket_server.serving(old) as old_api, socket_server.serving(new) as new_api:
        after = BLOCKS[1] | {"PROVIDER_MAIL_2027_URL": new_api.url}
        settings.SENDGRID_API_KEY, settings.SENDGRID_URL = after["SENDGRID_API_KEY"], old_api.url
        declare(settings, EMAIL_PROVIDER="sendgrid")
        before, later = factories.mails(2)
        dispatch(before)
        declare(settings, **after)
        dispatch(later)
    assert (len(old.requests), len(new.requests)) == (1, 1)
    names = [attempt["provider"] for i in (before, later) for attempt in factories.attempts(i)]
    assert names == ["sendgrid", "mail_2027"]
    for notification_id, name in ((before, "sendgrid"), (later, "mail_2027")):
        webhook_log.process_webhook(
            [delivered(notification_id)], provider=name, body="[]", now=utc_now()
        )
        assert factories.delivery(factories.read(notification_id))["status"] == "delivered"


def dispatch(notification_id: ObjectId) -> None:
    pipeline.dispatch(SendingRuntime(), [notification_id], channel=EMAIL)


def delivered(notification_id: ObjectId) -> Receipt:
    return Receipt(
        reference=f"{notification_id}.email.1",
        provider_id="sg-1",
        kind=ReceiptKind.DELIVERED,
        at=utc_now(),
        reason=None,
        event_id=str(notification_id),
        address=None,
    )
