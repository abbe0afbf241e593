"""No page of the console has a link that its reader may not follow."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest
from bson import ObjectId
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client
from django.urls import resolve

from domain.time import utc_now
from monitoring import incidents
from monitoring.incidents import Finding
from monitoring.models import AlertKind
from tests.support import console_urls
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories.demo_day import store_day
from tests.support.factories.one_of_each import store_one_of_each
from tests.support.samples import sampled

pytestmark = pytest.mark.usefixtures("db", "broker")

ROLES = ("viewer", "support", "operator")
"""An admin may follow every link."""
ENDS = ("/add/", "/delete/", "/history/")


class _Links(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.found.append(urljoin(self.url, href))


def store_pages() -> None:
    now = utc_now()
    store_day(now=now, busy=2, waves=2)
    store_one_of_each(now=now)
    for kind in AlertKind:
        finding = Finding(
            rule_id=ObjectId(),
            kind=kind,
            subject="sendgrid:default" if "provider" in kind or "breaker" in kind else "all",
            title=f"{kind} is open",
            detail="For a test.",
        )
        incidents.record(finding, now=now - timedelta(minutes=5))


@pytest.mark.usefixtures("admin_user")
def test_role_may_follow_every_link_that_it_sees(subtests: pytest.Subtests) -> None:
    store_pages()
    call_command("create_roles", verbosity=0)
    # Forms and questions have only the links of the pages that lead to them.
    found = [path for path in console_urls.page_paths() if not path.endswith(ENDS)]
    # Each takes some hundred pages, so that another run has another role and other pages.
    pages = sampled(found, each=2)
    for role in sampled(ROLES, each=len(ROLES)):
        user = make_staff(f"{role}-1")
        user.groups.set([Group.objects.get(name=role)])
        with subtests.test(role=role):
            assert forbidden_links(signed_in(user), pages) == []


def forbidden_links(client: Client, pages: Sequence[str]) -> list[str]:
    followed: dict[str, int] = {}
    found = []
    for page in pages:
        answer = client.get(page)
        if answer.status_code != 200 or b"<main" not in answer.content:
            continue
        for link in links(page, answer.content.decode()):
            kind = resolve(urlsplit(link).path).view_name
            # One link of each kind: they need the same permission.
            if kind not in followed:
                followed[kind] = client.get(link).status_code
            if followed[kind] == 403:
                found.append(f"{page} → {link}")
    assert len(followed) > 15
    return found


def links(page: str, text: str) -> Iterator[str]:
    parser = _Links(f"http://testserver{page}")
    parser.feed(text)
    for link in dict.fromkeys(parser.found):
        path = urlsplit(link).path
        if path.startswith("/admin/") and not path.endswith("/logout/"):
            yield link
