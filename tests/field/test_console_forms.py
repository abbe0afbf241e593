"""What users of other consoles reported about forms and lists."""

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from bson import ObjectId
from django.test import Client

from domain.channels import Channel
from domain.errors import FailureCode as F
from domain.states import DeliveryStatus as S
from domain.states import Priority
from domain.time import utc_now
from monitoring import incidents
from monitoring.incidents import Finding
from monitoring.models import AlertKind
from notifications.models import NotificationType
from notifications.store import leases
from notifyproject.db.collections import collection
from recipients.models import Suppression
from tests.console.test_every_form import object_form
from tests.support.clients.console import listed, register_ada
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

ADDRESS = "ada@example.com"
PASTED = {
    "blanks": f"  {ADDRESS} ",
    "a no-break space": f"\u00a0{ADDRESS}\u00a0",
    "a zero-width space": f"{ADDRESS}\u200b",
    "a byte order mark": f"\ufeff{ADDRESS}",
    "marks of direction": f"\u202a{ADDRESS}\u202c",
    "a soft hyphen": "ada@exam\u00adple.com",
    "a link": f"mailto:{ADDRESS}",
    "a header": f"Ada Lovelace <{ADDRESS}>,",
    "brackets": f"<{ADDRESS}>",
    "a line end": f"{ADDRESS}\r\n",
    "a comma": f"{ADDRESS},",
    "the end of a sentence": f"{ADDRESS}. ",
    "quotes": f'"{ADDRESS}";',
    "full-width letters": "".join(chr(ord(character) + 0xFEE0) for character in ADDRESS),
    "an ideographic stop": "ada@example\u3002com",
}


@pytest.fixture
def _ada() -> None:
    register_ada()


@pytest.mark.usefixtures("_ada")
@each_case("text", PASTED.values())
def test_pasted_address_is_found_and_suppressed(console: Client, text: str) -> None:
    """https://github.com/mysociety/alaveteli/issues/4855 and mozilla/fxa/issues/12567"""
    query = urlencode({"q": text})
    assert listed(console, f"/admin/recipients/recipient/?{query}") == ["ada"]
    palette = console.get(f"/admin/search/?{urlencode({'s': text})}").content.decode()
    assert "/admin/recipients/recipient/ada/change/" in palette
    sent = {"channel": "email", "address": text, "reason": "manual"}
    assert console.post("/admin/recipients/suppression/add/", sent).status_code == 302
    assert Suppression.objects.get().address == ADDRESS
    Suppression.objects.all().delete()


def test_line_ends_are_no_change_and_stored_as_the_api_stores_them(console: Client) -> None:
    """https://github.com/raphaelm/django-hierarkey/pull/19: a browser sends CRLF."""
    text = "\n\nfirst\rline  \nsecond\t\n\n\nlast\n"
    NotificationType.objects.filter(pk="mfa_code").update(description=text)
    url = "/admin/notifications/notificationtype/mfa_5Fcode/change/"
    form = object_form(console, url)
    answer = console.post(url, {**form.values, "max_retries": ["4"]})
    assert answer.status_code == 302
    stored = collection("notification_types").find_one({"_id": "mfa_code"})
    assert stored is not None
    assert (stored["description"], stored["max_retries"]) == (text, 4)
    console.post(url, {**form.values, "description": ["one\r\ntwo"]})
    assert NotificationType.objects.get(pk="mfa_code").description == "one\ntwo"


@pytest.fixture
def rows(console: Client) -> None:
    """One row for each list."""
    now = utc_now()
    register_ada()
    sent = {"channel": "email", "address": ADDRESS, "reason": "manual"}
    console.post("/admin/recipients/suppression/add/", sent)
    failed = factories.started(at=now, created_at=now, user_id="ada")
    leases.settle([factories.settlement(failed, S.FAILED, at=now, code=F.BOUNCED)], now=now)
    at = now + timedelta(hours=1)
    factories.accepted(created_at=now, user_id="ada", channels=(Channel.PUSH,), scheduled_at=at)
    kind = AlertKind.SWEEP_OVERDUE
    finding = Finding(rule_id=ObjectId(), kind=kind, subject="all", title="No sweep", detail="-")
    incidents.record(finding, now=now)


FILTERED = (
    ("/admin/recipients/suppression/", {"channel": "email"}),
    ("/admin/recipients/suppression/", {"channel": "email", "reason": "manual"}),
    ("/admin/notifications/notificationtype/", {"q": "code"}),
)


@pytest.mark.usefixtures("rows")
@each_case("path, query", FILTERED)
def test_page_of_an_object_leads_back_to_the_filtered_list(
    console: Client, path: str, query: dict[str, str]
) -> None:
    """https://github.com/unfoldadmin/django-unfold/issues/1016"""
    rows = console.get(f"{path}?{urlencode(query)}").content.decode()
    kept = urlencode({"_changelist_filters": urlencode(query)})
    assert kept in rows.replace("&amp;", "&")
    link = next(part for part in rows.split('href="') if "_changelist_filters" in part)
    page: Any = console.get(link.partition('"')[0].replace("&amp;", "&"))
    assert f"{path}?{urlencode(query)}" in page.content.decode().replace("&amp;", "&")


CRUMB = re.compile(r'<a class="crumb" href="([^"]+)">([^<]+)</a>')


@pytest.mark.usefixtures("rows")
@each_case(
    "path, query, title",
    [
        ("notifications/notification", {"q": "ada", "priority": "normal"}, "Notifications"),
        ("notifications/failednotification", {"channel": "email"}, "Failed deliveries"),
        ("notifications/failednotification", {"q": "ada", "code": "bounced"}, "Failed deliveries"),
        ("notifications/failednotification", {}, "Failed deliveries"),
        ("notifications/waitingnotification", {"channel": "push"}, "Scheduled and held"),
        ("analytics/incident", {"state": "open"}, "Incidents"),
        ("recipients/suppression", {"channel": "email"}, "Suppressions"),
    ],
)
def test_breadcrumb_leads_back_to_the_list_and_its_filters(
    console: Client, path: str, query: dict[str, str], title: str
) -> None:
    """https://github.com/unfoldadmin/django-unfold/issues/1016"""
    listed_at = f"/admin/{path}/" + (f"?{urlencode(query)}" if query else "")
    rows = console.get(listed_at)
    links = re.findall(r'<th[^>]*>\s*<a[^>]* href="([^"]+)"', rows.content.decode())
    assert links, rows.content.decode()[-3000:]
    page = console.get(unescape(links[0]), follow=True)
    assert CRUMB.findall(unescape(page.content.decode()))[-1] == (listed_at, title)


def test_breadcrumb_of_a_forged_list_is_that_of_the_page(console: Client) -> None:
    own = "/admin/notifications/notification/"
    url = f"{own}{factories.accepted()['_id']}/change/"
    for name in ("staffuser", "notification", "nothing", "../x"):
        page = console.get(url, {"list": name, "_changelist_filters": '"><script>1'})
        [*_, (link, title)] = CRUMB.findall(page.content.decode())
        assert (link.partition("?")[0], title) == (
            "/admin/notifications/notification/",
            "Notifications",
        )
        assert "<script>1" not in page.content.decode()


def test_applied_filters_stay_in_the_form_of_the_next(console: Client) -> None:
    """https://github.com/unfoldadmin/django-unfold/issues/1823"""
    page = console.get("/admin/admin/logentry/?who=clients&action=1&done_within=24h")
    text = page.content.decode()
    for value in ("clients", "1", "24h"):
        assert f'<option value="{value}" selected>' in text, value


# https://github.com/bashGroup/node-red-contrib-fritz/issues/24
# https://github.com/nycmeshnet/meshdb/issues/400
@pytest.mark.usefixtures("_ada")
@each_case(
    "text",
    [
        "+351 912 345 678",
        "00351912345678",
        "00 351 912-345-678",
        "tel:+351912345678",
        "+351 (0)912 345 678",
        "+351 912/345/678",
        "+351\u2011912\u2013345\u2212678",
        "+351 912 345 678,",
        "\uff0b\uff13\uff15\uff11 912 345 678",
        "'+351912345678'",
        "+351.912.345.678",
        "\u202a+351 912 345 678\u202c",
        "TEL:+351-912-345-678",
    ],
)
def test_pasted_number_is_found(console: Client, text: str) -> None:
    query = urlencode({"q": text})
    assert listed(console, f"/admin/recipients/recipient/?{query}") == ["ada"]


# https://github.com/carltongibson/django-filter/issues/633
@each_case(
    "limits",
    [
        {"failed_until": "0001-01-01T00:00"},
        {"failed_from": "9999-12-31T23:59", "failed_until": "9999-12-31T23:59"},
        {"failed_from": "2026-03-29T01:30", "failed_until": "2026-03-29T02:30"},
        {"failed_from": "2026-13-40T00:00"},
        {"failed_from": "2026-10-25T02:30", "failed_until": "2026-10-25T01:30"},
    ],
)
def test_any_limits_of_time_are_answered(console: Client, limits: dict[str, str]) -> None:
    for page in ("failednotification", "notification", "deliveryattempt", "webhooklog"):
        assert console.get(f"/admin/notifications/{page}/", limits).status_code in {200, 302}


HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


@pytest.fixture
def two_pages() -> None:
    now = utc_now()
    for number in range(51):
        at = now - timedelta(seconds=number)
        factories.accepted(created_at=at, user_id=f"user-{number}", priority=Priority.HIGH)


# https://github.com/e107inc/e107/issues/1813
@pytest.mark.usefixtures("two_pages")
@each_case("query", [{}, {"type": "payment_confirmed"}, {"priority": "high"}])
def test_search_from_a_later_page_starts_at_the_first(
    console: Client, query: dict[str, str]
) -> None:
    url = "/admin/notifications/notification/"
    first = console.get(url, query)
    second = console.get(f"{url}{first.context['cl'].next_url}")
    assert [row.user_id for row in second.context["cl"].result_list] == ["user-50"]
    _, _, rest = second.content.decode().partition('id="changelist-search"')
    form = dict(HIDDEN.findall(rest.partition("</form>")[0]))
    assert form == query
    answer = console.get(url, {**form, "q": "user-3"})
    assert [row.user_id for row in answer.context["cl"].result_list] == ["user-3"]
