"""Template tags of the console: breadcrumbs, retention, and components that escape texts."""

from typing import Any

import pytest
from django.template import Context, Template
from django.urls import reverse

from console.templatetags.console import breadcrumbs
from console.templatetags.retention import retention_table
from notifyproject.db.collections import collection


def titles(*parts: tuple[str, str]) -> list[str]:
    return [
        breadcrumb["title"]
        for breadcrumb in breadcrumbs({}, [{"link": link, "title": t} for link, t in parts])
    ]


def test_breadcrumb_uses_the_menus_name() -> None:
    url = reverse("admin:notifications_webhooklog_changelist")
    found = titles(("/admin/notifications/", "Notifications"), (url, "webhook logs"), ("/x", "one"))
    assert found == ["Activity", "Provider webhooks", "one"]
    staff = reverse("admin:access_staffuser_changelist")
    assert titles(("/admin/access/", "Access"), (staff, "users")) == ["Configuration", "Staff"]
    home = titles(("/admin/x/", "App"), (reverse("admin:notifications_broadcast_changelist"), "b"))
    assert home == ["Broadcasts"], "the first group of the menu has no title"


def test_repeated_breadcrumb_keeps_the_last_link() -> None:
    devices = reverse("admin:devices_device_changelist")
    links = [{"link": link, "title": "devices"} for link in ("/admin/devices/", devices)]
    assert [breadcrumb.get("link") for breadcrumb in breadcrumbs({}, links)] == [None, devices]


@pytest.mark.usefixtures("db")
def test_retention_table_shows_each_categorys_days() -> None:
    content, record = "Content and addresses of notifications", "Notifications and attempts"
    assert retention_table()[:2] == [(content, "30 days"), (record, "90 days")]
    collection("retention_policies").update_one({"_id": "marketing"}, {"$set": {"content_days": 7}})
    assert dict(retention_table())[content] == (
        "transactional 30 days, marketing 7 days, alert 30 days"
    )


def rendered(source: str, **context: Any) -> str:
    return Template("{% load console %}" + source).render(Context(context))


def test_icon_is_hidden_from_screen_readers() -> None:
    assert rendered('{% icon "error" %}') == (
        '<span class="material-symbols-outlined" aria-hidden="true">error</span>'
    )
    shown = rendered('{% icon "error" "danger" %}')
    assert 'class="material-symbols-outlined color-danger"' in shown


def test_label_has_its_colour_and_is_escaped() -> None:
    shown = rendered("{% chip words color %}", words="<b>5 & more</b>", color="calm")
    assert shown == '<span class="chip chip-calm">&lt;b&gt;5 &amp; more&lt;/b&gt;</span>'


def test_table_has_a_heading_and_column_classes() -> None:
    rows = "{% for one in rows %}<tr><td>{{ one }}</td></tr>{% endfor %}"
    shown = rendered(
        '{% table "sums" "Channel" "number|Failed" "wide-only|Last" %}' + rows + "{% endtable %}",
        rows=["<i>"],
    )
    assert shown == (
        '<div class="scroll-x" tabindex="0" role="group" aria-labelledby="sums">'
        '<table class="figures"><thead><tr><th scope="col">Channel</th>'
        '<th scope="col" class="number">Failed</th>'
        '<th scope="col" class="wide-only">Last</th></tr></thead>'
        "<tbody><tr><td>&lt;i&gt;</td></tr></tbody></table></div>"
    )
