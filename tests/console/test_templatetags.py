"""The way at the top of a page is in the words of the menu; and how long what is kept."""

import pytest
from django.urls import reverse

from console.templatetags.crumbs import breadcrumbs
from console.templatetags.retention import retention_table
from notifications.catalog import retention
from notifyproject.db.collections import collection


def words(*parts: tuple[str, str]) -> list[str]:
    return [one["title"] for one in breadcrumbs([{"link": link, "title": t} for link, t in parts])]


def test_a_list_is_called_as_in_the_menu() -> None:
    calls = reverse("admin:notifications_webhooklog_changelist")
    way = words(("/admin/notifications/", "Notifications"), (calls, "webhook logs"), ("/x", "one"))
    assert way == ["Notifications", "Provider webhooks", "one"]


def test_no_name_comes_twice_and_the_last_one_stays() -> None:
    devices = reverse("admin:devices_device_changelist")
    (one,) = breadcrumbs(
        [{"link": "/admin/devices/", "title": "devices"}, {"link": devices, "title": "devices"}]
    )
    assert one["link"] == devices


@pytest.mark.usefixtures("db")
def test_how_long_notifications_are_kept_is_what_each_category_says() -> None:
    said, whole = (
        "What notifications said, and to which address",
        "Notifications and their attempts",
    )
    assert retention_table()[:2] == [(said, "30 days"), (whole, "90 days")]
    collection(retention.COLLECTION).update_one({"_id": "marketing"}, {"$set": {"content_days": 7}})
    assert dict(retention_table())[said] == "transactional 30 days, marketing 7 days, alert 30 days"
