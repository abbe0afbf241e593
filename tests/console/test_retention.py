"""Retention in the console: days per category, and notifications without content."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client

from domain.channels import Channel
from domain.states import Category, DeliveryStatus
from domain.time import utc_now
from notifications.catalog import retention
from notifications.models import RetentionPolicy
from notifyproject.db.collections import collection
from privacy import content_removal
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

S = DeliveryStatus
LIST = "/admin/notifications/retentionpolicy/"
MARKETING = f"{LIST}marketing/change/"
DAY = timedelta(days=1)


def days(category: Category) -> tuple[int, int]:
    policy = retention.retention_of(category)
    return policy.content.days, policy.metadata.days


def save(client: Client, content: str, metadata: str) -> Any:
    return client.post(MARKETING, {"content_days": content, "metadata_days": metadata})


def test_list_has_a_row_per_category(console: Client) -> None:
    page = console.get(LIST).content.decode()
    for category in Category:
        assert category.value.capitalize() in page
    assert page.count("30 days (default)") == len(Category)
    assert page.count("90 days (default)") == len(Category)


def test_change_applies_at_once_to_its_category(console: Client) -> None:
    assert save(console, "7", "60").status_code == 302
    assert (days(Category.MARKETING), days(Category.ALERT)) == ((7, 60), (30, 90))
    assert "7 days" in console.get(LIST).content.decode()
    save(console, "", "")
    assert days(Category.MARKETING) == (30, 90)


def test_change_is_audited_with_old_and_new_days(console: Client) -> None:
    save(console, "7", "60")
    save(console, "7", "")
    messages = [entry.get_change_message() for entry in LogEntry.objects.order_by("id")]
    content, record = "Content retention (days)", "Record retention (days)"
    first = f"Changed {content} (empty → 7) and {record} (empty → 60)."
    assert messages == [first, f"Changed {record} (60 → empty)."]


def test_change_keeps_the_removal_progress(console: Client) -> None:
    now = utc_now()
    form = console.get(MARKETING).context["adminform"].form
    assert set(form.fields) == {"content_days", "metadata_days"}
    retention.record_progress(Category.MARKETING, until=now)
    save(console, "7", "")
    assert RetentionPolicy.objects.get(pk="marketing").removed_until is not None


@each_case(
    "content, metadata, problem",
    [
        ("0", "90", "greater than or equal to 1"),
        ("10", "13", "greater than or equal to 14"),
        ("30", "3651", "less than or equal to 3650"),
        ("61", "60", "The record is deleted after 60 days"),
        ("91", "", "The record is deleted after 90 days"),
        ("many", "90", "Enter a whole number"),
    ],
)
def test_invalid_days_are_refused(
    console: Client, content: str, metadata: str, problem: str
) -> None:
    answer = save(console, content, metadata)
    assert answer.status_code == 200
    assert problem in answer.content.decode()
    assert days(Category.MARKETING) == (30, 90)


def test_content_is_kept_no_longer_than_the_record(console: Client) -> None:
    assert save(console, "", "14").status_code == 302
    assert days(Category.MARKETING) == (14, 14)


def test_form_says_when_a_change_applies(console: Client) -> None:
    page = console.get(MARKETING).content.decode()
    assert "also existing ones" in page
    assert "for existing ones, run manage.py remove_content --existing" in page


@each_case(
    "role, view_status, change_status",
    [("viewer", 200, 403), ("support", 403, 403), ("operator", 200, 403), ("admin", 200, 302)],
)
def test_only_admins_change_retention(role: str, view_status: int, change_status: int) -> None:
    call_command("create_roles", verbosity=0)
    user = make_staff(f"a-{role}")
    user.groups.add(Group.objects.get(name=role))
    client = signed_in(user)
    assert client.get(LIST).status_code == view_status
    assert save(client, "7", "60").status_code == change_status
    assert days(Category.MARKETING) == ((7, 60) if change_status == 302 else (30, 90))


def test_policy_is_neither_added_nor_deleted(console: Client) -> None:
    assert console.get(f"{LIST}add/").status_code == 403
    assert console.post(f"{LIST}marketing/delete/", {"post": "yes"}).status_code == 403


def page_of(client: Client, **fields: Any) -> str:
    at = utc_now() - 31 * DAY
    document = factories.settled(S.FAILED, at=at, created_at=at, **fields)
    content_removal.remove_expired_content(now=utc_now())
    response = client.get(f"/admin/notifications/notification/{document['_id']}/change/")
    assert response.status_code == 200
    return str(response.content.decode())


def test_page_shows_when_content_was_removed(console: Client) -> None:
    shown, today = page_of(console, entity_id="order-7"), utc_now()
    assert f"{today:%Y-%m-%d}" in shown
    for words in ("Provider error", "Attempt 1 ", "order-7", "12 ms", "503"):
        assert words in shown, words
    content = ("ada@example.com", "Your payment has arrived", "<iframe", "problem of its own. (")
    for words in content:
        assert words not in shown, words


def test_page_of_removed_content_offers_no_resend(console: Client) -> None:
    shown = page_of(console)
    assert "Resend: won&#x27;t help" in shown
    assert "Content was removed by retention" in shown
    for words in ("Next step:", "Retry failed channels", ">Resend</button>"):
        assert words not in shown, words


def test_page_shows_content_kept_in_the_inbox(console: Client) -> None:
    shown = page_of(console, channels=(Channel.IN_APP, Channel.EMAIL))
    assert "Your payment has arrived" in shown
    assert "stays in the recipient's inbox" in shown
    assert "<iframe" not in shown


def test_resend_of_removed_content_is_refused(console: Client) -> None:
    page_of(console)
    (stored,) = collection("notifications").find()
    url = f"/admin/notifications/notification/{stored['_id']}/resend/"
    answer = console.post(url, {"confirmed": "yes", "channels": ["email"]}, follow=True)
    assert "Content was removed on" in answer.content.decode()
    assert collection("notifications").count_documents({}) == 1


def test_lists_keep_a_notification_without_content(console: Client) -> None:
    page_of(console)
    for name in ("notification", "failednotification", "deliveryattempt"):
        response = console.get(f"/admin/notifications/{name}/")
        assert len(response.context["cl"].result_list) == 1, name
    page = console.get("/admin/recipients/recipient/ada/change/").content.decode()
    assert "payment" in page.lower()
