"""S6: the time to first byte of the console's pages with a million notifications.

``tests/console/test_query_plans.py`` checks the reads of these pages one by one.
"""

import http.client
import io
import time
from collections.abc import Iterator
from statistics import median
from typing import Any
from urllib.parse import quote, urlsplit

from domain.time import utc_now

from . import environment
from .environment import Bench
from .figures import Figure, Progress, at_most
from .processes import cpu_seconds

MAX_FIRST_BYTE_MS = 300.0
REQUESTS = 10
TIMEOUT = 60
LISTS = "/admin/notifications"
ALL, FAILED, WAITING = (f"{LISTS}/{kind}notification/" for kind in ("", "failed", "waiting"))
PAGES = {
    "home": "/admin/",
    "failed": FAILED,
    "failed by cause": f"{FAILED}?channel=email&code=provider_error",
    "failed by type": f"{FAILED}?type={{type}}&failed_within=7d",
    "failed by client": f"{FAILED}?client={{client_id}}&failed_within=30d",
    "failed, searched": f"{FAILED}?q={{user_id}}",
    "all": ALL,
    "all by status": f"{ALL}?status=sent",
    "all by channel": f"{ALL}?channel=email",
    "all by several": f"{ALL}?status=sent&type={{type}}&client={{client_id}}",
    "all, rare": f"{ALL}?delivery_status=unknown&channel=email",
    "search user": f"{ALL}?q={{user_id}}",
    "search external": f"{ALL}?q={{external_id}}",
    "search entity": f"{ALL}?q={{entity_id}}",
    "search nothing": f"{ALL}?q=nothing-{{_id}}",
    "detail": f"{ALL}{{_id}}/change/",
    "person": "/admin/recipients/recipient/{user_id}/change/",
    "people": "/admin/recipients/recipient/",
    "waiting": WAITING,
    "waiting, report": f"{WAITING}?reason=receipt&channel=email",
    "waiting, none": f"{WAITING}?reason=rate_limited",
    "attempts": f"{LISTS}/deliveryattempt/?status=failed",
    "calls": f"{LISTS}/webhooklog/",
    "audit": "/admin/admin/logentry/",
    "providers": f"{LISTS}/providerstate/",
    "workers": f"{LISTS}/heartbeat/",
    "bulk question": f"{LISTS}/bulkoperation/new/?list=failednotification&channel=email",
}
"""Paths of the console's pages, with places for the fields of a notification."""


def measure_pages(bench: Bench, *, stored: int, log_progress: Progress) -> Iterator[Figure]:
    """Measure S6 for each page."""
    # The factories read the settings, which exist only after the servers started.
    from tests.support.factories import console_data

    began = time.monotonic()
    sample = console_data.insert_console_data(now=utc_now(), count=stored)
    log_progress(f"{stored:,} notifications: {time.monotonic() - began:.0f} s")
    fields = {name: quote(str(value), safe="") for name, value in sample.items()}
    cookie = _session_cookie()
    with environment.run_web(bench, "notifyproject.wsgi") as (pids, url):
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT)
        for page, path in PAGES.items():
            times, cpu = _measure(connection, path.format(**fields), cookie, pids)
            log_progress(f"{page}: {median(times):.0f} ms, worst {max(times):.0f}")
            yield Figure(
                key=f"S6 {page}",
                label=f"first byte, {stored:,} notifications" if page == "home" else "",
                unit="ms",
                ours=median(times),
                goals=(at_most(MAX_FIRST_BYTE_MS),),
                note=f"worst {max(times):.0f} ms; the web's CPU {cpu:.0f} ms",
            )


def _measure(
    connection: http.client.HTTPConnection, url: str, cookie: str, pids: list[int]
) -> tuple[list[float], float]:
    """Return the first-byte times of a page, and the web's CPU time for a request, in ms."""
    times, before = [], 0.0
    # The first request of a page is not measured.
    for number in range(REQUESTS + 1):
        if number == 1:
            before = cpu_seconds(*pids)
        began = time.perf_counter()
        connection.request("GET", url, headers={"Cookie": cookie})
        answer = connection.getresponse()
        times.append(1000 * (time.perf_counter() - began))
        answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{url}: {answer.status} {answer.headers.get('Location', '')}")
    return times[1:], 1000 * (cpu_seconds(*pids) - before) / REQUESTS


def _session_cookie() -> str:
    from django.conf import settings
    from django.contrib.auth.models import Group
    from django.core.management import call_command
    from django.test import Client

    from access.models import StaffUser

    call_command("create_roles", stdout=io.StringIO())
    user: Any = StaffUser.objects.create_user("olga", "olga@example.com", "s3cret-enough")
    user.is_staff = True
    user.save()
    user.groups.add(Group.objects.get(name="operator"))
    client, name = Client(), settings.SESSION_COOKIE_NAME
    client.force_login(user)
    return f"{name}={client.cookies[name].value}"
