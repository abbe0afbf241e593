"""Notifications of API clients in test mode are marked in the console."""

import pytest
from django.test import Client

from console.texts.labels import provider_label
from domain.channels import Channel
from domain.time import utc_now
from providers.registry import providers_for
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

BADGE = ">Test</span>"
LISTS = ["/admin/notifications/notification/", "/admin/notifications/failednotification/"]


@pytest.mark.parametrize("url", LISTS)
def test_list_marks_test_notifications(console: Client, url: str) -> None:
    now = utc_now()
    factories.settled(factories.S.FAILED, at=now, created_at=now)
    assert BADGE not in console.get(url).content.decode()
    factories.settled(factories.S.FAILED, at=now, created_at=now, is_test=True)
    assert console.get(url).content.decode().count(BADGE) == 1


@each_case("is_test", [True, False])
def test_page_marks_a_test_notification(console: Client, is_test: bool) -> None:
    document = factories.accepted(created_at=utc_now(), is_test=is_test)
    shown = console.get(f"{LISTS[0]}{document['_id']}/change/").content.decode()
    assert (BADGE in shown) is is_test


@each_case("channel", [Channel.EMAIL, Channel.WHATSAPP])
def test_sandbox_provider_has_a_label(channel: Channel) -> None:
    (provider,) = providers_for(channel, test=True)
    assert str(provider_label(provider.name)).startswith("Sandbox (")
