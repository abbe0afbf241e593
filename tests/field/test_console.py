"""Reports of operators about the consoles of other projects. Each case names its thread."""

import codecs
import csv
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from access.models import StaffUser
from delivery import provider_pauses
from domain.states import BulkStage, DeliveryStatus
from domain.time import utc_now
from monitoring import incidents, workers
from monitoring.incidents import Finding
from monitoring.models import AlertKind
from notifications.bulk import runner
from notifyproject.db.collections import collection
from tests.support import console_urls
from tests.support.clients.bulk_console import BULK, FAILED, failed, open_form, start, stored
from tests.support.clients.console import make_staff, signed_in
from tests.support.console_urls import CHANGES
from tests.support.factories import notifications as factories
from tests.support.samples import sampled

pytestmark = pytest.mark.usefixtures("db", "broker")

S = DeliveryStatus
NOTIFICATIONS = "/admin/notifications/notification/"


def text(response: Any) -> str:
    return " ".join(unescape(strip_tags(response.content.decode())).split())


FORMULAS = [
    "=cmd|'/C calc.exe'!Z0",
    '=HYPERLINK("http://evil.example","x")',
    "+1+1",
    "-2+3",
    "@SUM(1+1)",
    "\t=1+1",
]
NAMES = ["Zo\u00eb", "\u0141ukasz", "\u5f20\u4f1f", "\u0639\u0645", "\U0001f600"]


def test_exported_cell_is_no_formula_and_the_file_names_its_encoding(console: Client) -> None:
    """https://github.com/railsadminteam/rails_admin/issues/3650,
    https://github.com/learningequality/kolibri/issues/8001,
    https://github.com/sqlpage/SQLPage/issues/528: Excel.
    """
    for value in (*FORMULAS, *NAMES):
        _id = failed()["_id"]
        collection("notifications").update_one({"_id": _id}, {"$set": {"user_id": value}})
    operation = open_form(console)
    response = console.get(f"{BULK}{operation.id}/results.csv")
    content = b"".join(response.streaming_content)
    assert content.startswith(codecs.BOM_UTF8)
    assert content.count(codecs.BOM_UTF8) == 1
    rows = list(csv.DictReader(content.decode("utf-8-sig").splitlines()))
    assert {row["user_id"] for row in rows} == {*NAMES, *(f"'{value}" for value in FORMULAS)}
    cells = [str(cell) for row in rows for cell in row.values()]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for cell in cells)


def test_retry_all_that_is_clicked_twice_runs_once(console: Client) -> None:
    """https://github.com/Particular/ServicePulse/issues/57."""
    documents = [failed() for _ in range(3)]
    operation = open_form(console)
    assert "Running" in text(start(console, operation))
    again = text(start(console, operation))
    assert "Not started." in again
    for _ in range(2):
        runner.run(operation.id)
    log = collection("django_admin_log")
    counts = [log.count_documents({"object_id": str(document["_id"])}) for document in documents]
    assert counts == [1, 1, 1]


def test_two_clicks_on_resend_send_one_copy(console: Client) -> None:
    """https://github.com/rietveld-codereview/rietveld/issues/484."""
    document = failed()
    url = f"{NOTIFICATIONS}{document['_id']}/retry/"
    first = console.post(url, {"confirmed": "yes"}, follow=True)
    second = console.post(url, {"confirmed": "yes"}, follow=True)
    assert "1 notification requeued." in text(first)
    assert "1 skipped" in text(second)


def test_idle_worker_is_shown_and_one_that_is_gone_is_not(db: None) -> None:
    """https://github.com/mher/flower/issues/698: a worker appeared only after a restart.
    https://github.com/mher/flower/issues/1422 and issues/900: also no flickering.
    """
    now = utc_now()
    collection("heartbeats").insert_many(
        [
            {"_id": "worker:old-pod:1", "at": now - timedelta(minutes=10)},
            {"_id": "worker:new-pod:1", "at": now},
        ]
    )
    for _ in range(2):
        [worker] = workers.all_workers(now=now)
        assert (worker.name, worker.attempts, worker.last_at) == ("new-pod:1", 0, None)


def test_times_are_elements_that_the_browser_converts(console: Client) -> None:
    """https://github.com/cds-snc/notification-api/issues/218: a raw ISO time was shown."""
    now = utc_now()
    factories.settled(S.SENT, at=now, created_at=now)
    page = console.get(NOTIFICATIONS).content.decode()
    assert f'datetime="{now:%Y-%m-%dT%H:%M:%S}Z"' in page
    assert f"{now.isoformat()}" not in strip_tags(page)


def acknowledge(client: Client) -> str:
    kind = AlertKind.SWEEP_OVERDUE
    finding = Finding(rule_id=ObjectId(), kind=kind, subject="all", title="No sweep", detail="-")
    incident = incidents.record(finding, now=utc_now())
    assert incident is not None
    url = f"/admin/analytics/incident/{incident['_id']}/acknowledge/"
    client.post(url)
    other = signed_in(make_staff("otto", superuser=True))
    return text(other.post(url, follow=True))


def cancel_operation(client: Client) -> str:
    failed()
    operation = open_form(client)
    start(client, operation)
    url = f"{BULK}{operation.id}/cancel/"
    client.post(url, {"confirmed": "yes"})
    assert stored(operation.id).stage is BulkStage.CANCELLED
    other = signed_in(make_staff("otto", superuser=True))
    return text(other.post(url, {"confirmed": "yes"}, follow=True))


@pytest.mark.parametrize(
    ("act", "answer"),
    [
        (acknowledge, "Others are resolved or acknowledged."),
        (cancel_operation, "The operation has ended."),
    ],
)
def test_second_of_two_operators_is_told_that_it_is_done(
    console: Client, act: Callable[[Client], str], answer: str
) -> None:
    """https://github.com/Particular/ServicePulse/issues/57, the second half: a stale page."""
    assert answer in act(console)


def test_long_and_odd_names_break_no_page(console: Client) -> None:
    """https://github.com/nextcloud/mail/pull/7180: long subjects and errors overlapped."""
    names = (
        "x" * 128,
        "<script>alert(1)</script>",
        "\u202egnp.exe",
        "محمد بن سلمان",
        "👩‍👩‍👧‍👦" * 10,
    )
    pages = [f"{NOTIFICATIONS}{failed(user_id=name)['_id']}/change/" for name in names]
    for url in (FAILED, *pages, "/admin/"):
        response = console.get(url)
        assert response.status_code == 200
        assert "<script>alert" not in response.content.decode()


def test_reason_of_a_pause_is_escaped_on_home(console: Client, settings: Any) -> None:
    """https://github.com/mher/flower/issues/603: the page and the server differed."""
    settings.EMAIL_PROVIDERS, settings.SENDGRID_URL = ("sendgrid",), "https://api.sendgrid.com"
    reason = "<b>" + "maintenance-" * 12
    provider_pauses.pause("sendgrid", by="maria", reason=reason, now=utc_now())
    page = console.get("/admin/").content.decode()
    assert "<b>maintenance" not in page
    assert "SendGrid paused by maria" in page
    provider_pauses.resume("sendgrid", by="maria")
    assert "SendGrid paused" not in console.get("/admin/refresh/").content.decode()


def test_sign_in_in_the_middle_of_an_action_ends_on_a_page(
    client: Client, admin_user: StaffUser
) -> None:
    """https://github.com/PowerDNS-Admin/PowerDNS-Admin/issues/403."""
    entered = {"username": admin_user.get_username(), "password": "s3cret-enough"}
    urls = [
        reverse("own-alerts-read"),
        *(
            reverse(f"admin:{name}", kwargs=console_urls.arguments(name))
            for name in CHANGES
            # Superusers see addresses without revealing them.
            if name != "logout" and not name.endswith("_reveal")
        ),
    ]
    for url in sampled(urls, each=6):
        client.logout()
        login = client.post(url)["Location"]
        assert login.startswith("/admin/login/")
        shown = client.post(login, {**entered, "next": url}, follow=True)
        assert (shown.status_code, shown.request["PATH_INFO"] == url) == (200, False), url
        assert "Nothing has been done. Start the action again from here." in text(shown), url
