"""The way at the top of a page is in the words of the menu; and how long what is kept."""

from datetime import timedelta

from django.urls import reverse

from notifications.intake.preparing import RETENTION
from notifications.templatetags.retention import kept
from notifyproject.templatetags.crumbs import crumbs


def words(*parts: tuple[str, str]) -> list[str]:
    return [one["title"] for one in crumbs([{"link": link, "title": t} for link, t in parts])]


def test_a_list_is_called_as_in_the_menu() -> None:
    calls = reverse("admin:notifications_webhooklog_changelist")
    way = words(("/admin/notifications/", "Notifications"), (calls, "webhook logs"), ("/x", "one"))
    assert way == ["Notifications", "Provider webhooks", "one"]


def test_no_name_comes_twice_and_the_last_one_stays() -> None:
    devices = reverse("admin:devices_device_changelist")
    (one,) = crumbs(
        [{"link": "/admin/devices/", "title": "devices"}, {"link": devices, "title": "devices"}]
    )
    assert one["link"] == devices


def test_how_long_notifications_are_kept_is_what_they_are_given() -> None:
    assert timedelta(days=90) == RETENTION
    assert kept()[0] == ("Notifications, what they said and their attempts", "90 days")
