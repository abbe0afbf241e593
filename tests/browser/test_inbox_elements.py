"""The inbox elements on an app's page, of another origin and under a strict policy."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from playwright.sync_api import Browser, Page, expect

from access.clients import inbox_tokens
from domain.content import Content
from domain.states import Category
from domain.time import utc_now
from notifications.inbox import actions, feed, wakeups
from notifications.store.inbox import Inbox
from notifyproject.db.collections import collection
from notifyproject.stack.servers import HOST
from recipients import registration
from tests.browser.accessibility import violations
from tests.browser.conftest import REPORT_VIOLATIONS
from tests.browser.screen import WAIT
from tests.support.clients.api import App
from tests.support.clients.inbox import delivered
from tests.support.samples import SEED
from tests.support.served_streams import served_streams
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("db", "broker")

BUNDLE = next(Path(configured.BASE_DIR, "static", "inbox").glob("*.js"))
HTML = """<!doctype html>
<html lang="{locale}" dir="{direction}"><meta charset="utf-8"><title>An app</title>
<meta name="viewport" content="width=device-width">
<script type="module" crossorigin src="{service}/static/inbox/{bundle}"
  integrity="sha384-{digest}"></script>
<link rel="stylesheet" href="/app.css"><main><h1>An app</h1>
<notify-bell token-url="/me/notify-token" service="{service}"></notify-bell>
<notify-inbox token-url="/me/notify-token" service="{service}"{attributes}></notify-inbox></main>
"""
CSS = """
:root { color-scheme: light dark }
body { font-family: system-ui; margin: 16px; background: light-dark(#fafafa, #0c0c0e) }
body { color: light-dark(#18181b, #f4f4f5) }
main { max-width: 720px; margin: auto } h1 { font-size: 20px }
notify-bell { float: inline-end; margin-block-start: -52px }
.start notify-bell, .clipped notify-bell { float: none; margin: 0 }
.clipped { max-width: 120px; height: 120px; overflow: hidden; position: relative; z-index: 0 }
.end notify-bell { position: fixed; z-index: 1; inset: auto 0 0 auto }
"""
LOCALES = {"/pt": "pt", "/underscore": "pt_BR"}
HEADERS = {"/start": "start", "/clipped": "clipped", "/end": "end"}
"""Places of the bell: first in the page, in a box that hides what overflows, in the last corner."""
STREAM = "/api/v1/inbox/stream"
POLICY = (
    "default-src 'self'; script-src {service}; connect-src 'self' {service} {streams}; "
    "require-trusted-types-for 'script'"
)


SCREENS = [("light", 1440), ("dark", 390)] if SEED % 2 else [("dark", 1440), ("light", 390)]
"""Color schemes and widths; another run has the others."""


@dataclass
class Site:
    """An app's page, whose own backend passes tokens on."""

    app: App
    service: str
    streams: str
    page: Page
    url: str = ""
    jti: str = ""
    tokens: int = 0
    problems: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[str, str]:
        """Return the content type and the body of a path."""
        if path == "/me/notify-token":
            issued = inbox_tokens.issue(client_id=self.app.id, user_id="ada", now=utc_now())
            self.jti, self.tokens = issued.jti, self.tokens + 1
            body = {"token": issued.text, "user_id": "ada", "stream_url": f"{self.streams}{STREAM}"}
            return "application/json", json.dumps(body)
        if path == "/app.css":
            return "text/css", CSS
        locale = LOCALES.get(path, "en")
        digest = base64.b64encode(hashlib.sha384(BUNDLE.read_bytes()).digest()).decode()
        values = {"service": self.service, "bundle": BUNDLE.name, "digest": digest}
        direction = "rtl" if path == "/rtl" else "ltr"
        attributes = ' filter="category:alert"' if path == "/alerts" else ""
        page = HTML.format(**values, locale=locale, direction=direction, attributes=attributes)
        if path == "/preferences":
            page = page.replace("notify-inbox", "notify-preferences")
        if path in HEADERS:
            page = page.replace("<main>", f"<main class={HEADERS[path]}>")
        return "text/html", page

    def send(
        self, subject: str, body: str = "Your order has left the warehouse.", **fields: Any
    ) -> None:
        content = Content(subject=subject, body=body)
        delivered(self.app, created_at=utc_now(), content=content, **fields)
        wakeups.send_inbox_wakeup(Inbox(self.app.id, "ada"))

    def note(self, message: Any) -> None:
        # The browser itself reports each 401.
        if message.type == "error" and "401" not in message.text:
            self.problems.append(message.text)


@contextmanager
def _served(site: Site) -> Iterator[str]:
    policy = POLICY.format(service=site.service, streams=site.streams)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = site.answer(self.path)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def site(chromium: Browser, app: App, live_server: Any, settings: Any) -> Iterator[Site]:
    context = chromium.new_context()
    context.set_default_timeout(WAIT)
    context.add_init_script(REPORT_VIOLATIONS)
    # The test server's own handler of static files adds no header, as WhiteNoise does.
    allowed = {"Access-Control-Allow-Origin": "*", "Content-Type": "text/javascript"}
    context.route(f"**/{BUNDLE.name}", lambda route: route.fulfill(path=BUNDLE, headers=allowed))
    page = context.new_page()
    with served_streams() as streams:
        site = Site(app=app, service=live_server.url, streams=streams, page=page)
        with _served(site) as site.url:
            settings.INBOX_ORIGINS = frozenset({site.url})
            context.on("console", site.note)
            yield site
            context.close()
    assert site.problems == []


def quiet_from(user_id: str) -> str | None:
    stored = registration.get(user_id) or {}
    return (stored.get("quiet_hours") or {}).get("start")


def test_page_of_another_origin_shows_a_live_inbox(site: Site) -> None:
    page = site.page
    site.send("Order 1001 shipped")
    page.goto(site.url)
    row = page.locator("notify-inbox li")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Order 1001 shipped")
    site.send("<b>Order</b> 1002 shipped")
    expect(row).to_have_count(2)
    expect(row.first).to_contain_text("<b>Order</b> 1002 shipped")


def test_tabs_agree(site: Site) -> None:
    first, second = site.page, site.page.context.new_page()
    for number in range(3):
        site.send(f"Order {number} shipped")
    for page in (first, second):
        page.goto(site.url)
        expect(page.locator("notify-inbox .unread")).to_have_count(3)
    second.get_by_role("button", name="Mark as read: Order 1 shipped").click()
    for page in (first, second):
        expect(page.locator("notify-inbox .unread")).to_have_count(2)
    first.get_by_role("button", name="Mark all as read").click()
    for page in (first, second):
        expect(page.locator("notify-inbox .unread")).to_have_count(0)


def test_user_does_not_see_that_a_token_ends(site: Site) -> None:
    page = site.page
    site.send("Order 1001 shipped")
    page.goto(site.url)
    expect(page.locator("notify-inbox li")).to_have_count(1)
    inbox_tokens.revoke(client_id=site.app.id, jti=site.jti, now=utc_now() - timedelta(seconds=1))
    page.get_by_role("button", name="Archive: Order 1001 shipped").click()
    expect(page.get_by_text(re.compile("all caught up"))).to_be_visible()
    site.send("Order 1002 shipped")
    expect(page.locator("notify-inbox li")).to_contain_text("Order 1002 shipped")
    assert site.tokens == 2


def test_item_is_snoozed_by_keyboard_and_comes_back(site: Site) -> None:
    page = site.page
    for number in (1, 2):
        site.send(f"Order {number} shipped")
    page.goto(site.url)
    row = page.locator("notify-inbox li")
    expect(row).to_have_count(2)
    page.get_by_role("button", name="Snooze: Order 2 shipped").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="In 3 hours")).to_be_focused()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Snooze: Order 2 shipped")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="In 3 hours")).to_be_focused()
    page.keyboard.press("Enter")
    expect(row).to_have_count(1)
    expect(row.locator(".open")).to_be_focused()
    page.get_by_role("button", name="Undo").click()
    expect(row).to_have_count(2)
    page.get_by_role("button", name="Snooze: Order 2 shipped").click()
    page.get_by_role("button", name="Tomorrow").click()
    expect(row).to_have_count(1)
    expect(page.locator("notify-inbox .count")).to_contain_text("1")
    back = utc_now() + timedelta(days=2)
    until(lambda: actions.resurface_due(now=back) == 1)
    expect(row).to_have_count(2)
    expect(row.first).to_contain_text("Order 2 shipped")


def test_action_is_chosen_once_in_every_tab(site: Site) -> None:
    approve = {"id": "approve", "label": "Approve", "style": "primary", "link": None}
    reject = {"id": "reject", "label": "Reject", "style": "danger", "link": None}
    kind = {"name": "Leave", "category": "transactional", "channels": ["in_app"]}
    assert site.app.put("/types/leave", kind | {"actions": [approve, reject]}).status_code == 201
    site.send("Grace asks for Friday off", type="leave")
    first, second = site.page, site.page.context.new_page()
    for page in (first, second):
        page.goto(site.url)
        expect(page.get_by_role("button", name="Reject: Grace asks for Friday off")).to_be_visible()
    assert violations(first) == []
    first.get_by_role("button", name="Approve: Grace asks for Friday off").click()
    for page in (first, second):
        expect(page.locator("notify-inbox .chosen")).to_have_text("Approve")
        expect(page.get_by_role("button", name=re.compile("Reject"))).to_have_count(0)
        expect(page.locator("notify-inbox .unread")).to_have_count(0)


def test_filtered_list_holds_one_category_and_is_live(site: Site) -> None:
    page = site.page
    site.send("Order 1 shipped")
    site.send("Disk is full", type="system_alert", category=Category.ALERT)
    page.goto(f"{site.url}/alerts")
    row = page.locator("notify-inbox li")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Disk is full")
    site.send("Order 2 shipped")
    site.send("Disk is free again", type="system_alert", category=Category.ALERT)
    expect(row).to_have_count(2)
    expect(row.first).to_contain_text("Disk is free again")
    # It takes no other item of another element.
    whole = page.context.new_page()
    whole.goto(site.url)
    whole.get_by_role("button", name="Mark as read: Order 1 shipped").click()
    whole.get_by_role("button", name="Mark as read: Disk is full").click()
    expect(page.locator("notify-inbox .read")).to_have_count(1)
    expect(row).to_have_count(2)


def test_hundreds_of_items_are_read_by_keyboard_and_drawn_when_seen(site: Site) -> None:
    page = site.page
    for number in range(130):
        content = Content(subject=f"Order {number} shipped", body="On its way.")
        delivered(site.app, created_at=utc_now() - timedelta(minutes=number), content=content)
    page.goto(site.url)
    row = page.locator("notify-inbox li")
    for shown in (30, 60, 90, 120):
        expect(row).to_have_count(shown)
        page.get_by_role("button", name="Load more").press("Enter")
    expect(row).to_have_count(130)
    page.locator("notify-inbox .open").first.focus()
    page.keyboard.press("End")
    last = page.locator("notify-inbox .open").last
    expect(last).to_be_focused()
    expect(last).to_be_in_viewport()
    is_drawn = "one => one.firstElementChild.checkVisibility({contentVisibilityAuto: true})"
    until(lambda: not row.first.evaluate(is_drawn))
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator("notify-inbox .read")).to_have_count(1)


def test_changes_made_offline_are_sent_later(site: Site) -> None:
    page = site.page
    for number in (1, 2):
        site.send(f"Order {number} shipped")
    page.goto(site.url)
    row = page.locator("notify-inbox li")
    expect(row).to_have_count(2)
    page.context.set_offline(True)
    page.get_by_role("button", name="Mark as read: Order 1 shipped").click()
    page.get_by_role("button", name="Archive: Order 2 shipped").click()
    expect(row).to_have_count(1)
    expect(page.get_by_text(re.compile("You.re offline"))).to_be_visible()
    page.context.set_offline(False)
    inbox = Inbox(site.app.id, "ada")
    until(lambda: feed.counts(inbox).unread == 0)
    expect(page.get_by_text(re.compile("You.re offline"))).to_have_count(0)
    page.reload()
    expect(row).to_have_count(1)
    # The browser reports the requests that failed while it was offline.
    site.problems = [
        problem for problem in site.problems if "ERR_INTERNET_DISCONNECTED" not in problem
    ]


def test_preferences_are_chosen_by_keyboard(site: Site) -> None:
    page = site.page
    page.goto(f"{site.url}/preferences")
    shipped = page.get_by_role("checkbox", name="Order shipped: Email")
    expect(shipped).to_be_checked()
    shipped.focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    category = page.get_by_role("checkbox", name="Your account and orders: Email")
    assert category.evaluate("one => one.indeterminate")
    stored = registration.get("ada")
    assert stored is not None
    assert stored["preferences"]["order_shipped"] == {"muted_channels": ["email"]}
    expect(page.get_by_role("checkbox", name="Login code: Email")).to_be_disabled()
    page.get_by_role("checkbox", name=re.compile("Quiet hours")).check()
    page.get_by_label("From").fill("21:30")
    page.get_by_label("From").press("Tab")
    until(lambda: quiet_from("ada") == "21:30")
    page.reload()
    expect(page.get_by_role("checkbox", name="Order shipped: Email")).not_to_be_checked()
    expect(page.get_by_label("From")).to_have_value("21:30")
    category.click()
    expect(shipped).to_be_checked()


def test_last_of_two_quick_choices_is_stored(site: Site) -> None:
    page = site.page
    page.goto(f"{site.url}/preferences")
    held: list[Any] = []

    def hold_the_first(route: Any) -> None:
        if route.request.method == "PUT" and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/preferences", hold_the_first)
    with page.expect_request(lambda request: request.method == "PUT"):
        page.get_by_role("checkbox", name=re.compile("Quiet hours")).check()
    page.get_by_label("From").fill("21:30")
    page.get_by_label("From").press("Tab")
    page.wait_for_timeout(300)
    with page.expect_response(lambda request: "21:30" in (request.request.post_data or "")):
        held[0].continue_()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_label("From")).to_have_value("21:30")


@pytest.mark.parametrize(("scheme", "width"), SCREENS)
def test_preferences_are_accessible(site: Site, scheme: Any, width: int) -> None:
    page = site.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{site.url}/preferences")
    page.get_by_role("checkbox", name=re.compile("Quiet hours")).check()
    page.get_by_label("From").wait_for()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_list_that_failed_is_read_again(site: Site) -> None:
    page = site.page
    site.send("Order 1001 shipped")
    page.route("**/api/v1/inbox?*", lambda route: route.abort())
    page.goto(site.url)
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert violations(page) == []
    page.unroute("**/api/v1/inbox?*")
    site.send("Order 1002 shipped")
    expect(page.locator("notify-inbox li")).to_have_count(2)
    # The browser reports the requests that this test aborted.
    site.problems = [problem for problem in site.problems if "ERR_FAILED" not in problem]


def test_bell_works_by_keyboard_and_without_motion(site: Site) -> None:
    page = site.page
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{site.url}/pt")
    page.get_by_text("Está tudo em dia").wait_for()
    page.keyboard.press("Tab")
    expect(page.locator("notify-bell .bell")).to_be_focused()
    page.keyboard.press("Enter")
    popover = page.get_by_role("dialog", name="Notificações")
    expect(popover).to_be_visible()
    inbox = page.locator("notify-bell notify-inbox")
    assert inbox.evaluate("one => getComputedStyle(one).animationName") == "none"
    page.keyboard.press("Escape")
    expect(popover).to_have_count(0)
    expect(page.locator("notify-bell .bell")).to_be_focused()


def test_item_is_snoozed_until_an_own_time(site: Site) -> None:
    page, (_, width) = site.page, SCREENS[0]
    page.set_viewport_size({"width": width, "height": 700})
    for number in (1, 2):
        site.send(f"Order {number} shipped")
    page.goto(site.url)
    row = page.locator("notify-inbox li")
    expect(row).to_have_count(2)
    name = "More actions: Order 2 shipped" if width < 480 else "Snooze: Order 2 shipped"
    row.first.hover()
    page.get_by_role("button", name=name).click()
    field = page.get_by_label("Day and time")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Nothing is snoozed without a time, or until one that the service refuses.
    submit = page.locator("notify-inbox .own button")
    submit.click()
    field.fill("2020-01-01T09:00")
    submit.click()
    expect(row).to_have_count(2)
    # The arrows belong to the field.
    field.press("ArrowUp")
    expect(field).to_be_focused()
    at = (utc_now() + timedelta(days=30)).replace(second=0, microsecond=0)
    local = page.evaluate(
        "at => new Date(at - new Date(at).getTimezoneOffset() * 60000).toISOString().slice(0, 16)",
        at.timestamp() * 1000,
    )
    field.fill(local)
    submit.click()
    expect(row).to_have_count(1)
    # The row goes before the service has answered.
    until(lambda: collection("notifications").count_documents({"snoozed_until": at}) == 1)


@pytest.mark.parametrize(("scheme", "width"), SCREENS)
def test_elements_are_accessible(site: Site, scheme: Any, width: int) -> None:
    page = site.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    site.send("Payment received", "We have your 49.90 for Sunrise.")
    site.send("A" + " very" * 30 + " long subject", "And" + " a long text" * 40)
    site.send("Order 1001 shipped")
    page.goto(site.url)
    page.locator("notify-inbox li").first.wait_for()
    if width < 480:
        page.get_by_role("button", name="More actions: Payment received").click()
        assert violations(page) == []
    page.get_by_role("button", name=re.compile("^Mark as read(: Payment received)?$")).click()
    assert violations(page) == []
    page.get_by_role("button", name="Archived").click()
    expect(page.get_by_text("Nothing is archived")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Inbox", exact=True).click()
    page.locator("notify-bell .bell").click()
    page.locator("notify-bell li").first.wait_for()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# https://github.com/chatwoot/chatwoot/issues/7127: a language with an underscore
def test_page_follows_its_language_and_direction(site: Site) -> None:
    page = site.page
    site.send("Order 1 shipped")
    row = page.locator("notify-inbox li")
    page.goto(f"{site.url}/underscore")
    expect(row).to_contain_text("agora")
    expect(page.get_by_role("heading", name="Hoje")).to_be_visible()
    page.goto(f"{site.url}/rtl")
    expect(row).to_have_count(1)
    dot, subject = (row.locator(name).bounding_box() for name in (".dot", ".subject"))
    assert dot is not None
    assert subject is not None
    assert dot["x"] > subject["x"]
    assert violations(page) == []


# https://github.com/novuhq/novu/pull/7941, https://github.com/lerd-env/lerd/issues/1049
def test_popover_is_wholly_visible_wherever_the_bell_is(site: Site) -> None:
    for number in range(12):
        site.send(f"Order {number} shipped")
    for width in (900, 390):
        site.page.set_viewport_size({"width": width, "height": 700})
        for place in ("/start", "/clipped", "/end", "/rtl", ""):
            site.page.goto(f"{site.url}{place}")
            _check_popover(site.page, width, f"{width} px, {place}")


def _check_popover(page: Page, width: int, case: str) -> None:
    page.locator("notify-bell .bell").click()
    page.locator("notify-bell li").first.wait_for()
    frame = page.locator("notify-bell notify-inbox .frame")
    until(lambda: (frame.bounding_box() or {"height": 0})["height"] > 300)
    box = frame.bounding_box()
    assert box is not None
    assert box["x"] >= 0, case
    assert box["y"] >= 0, case
    assert box["x"] + box["width"] <= width, case
    assert box["y"] + box["height"] <= 700, case
    corners = [
        (box["x"] + dx, box["y"] + dy)
        for dx in (20, box["width"] - 20)
        for dy in (20, box["height"] - 20)
    ]
    on_top = "([x, y]) => document.elementFromPoint(x, y)?.localName"
    assert {page.evaluate(on_top, corner) for corner in corners} == {"notify-bell"}, case


def test_archived_and_snoozed_items_have_views_of_their_own(site: Site) -> None:
    page = site.page
    for number in range(4):
        site.send(f"Order {number} shipped")
    page.goto(site.url)
    row = page.locator("notify-inbox li")
    expect(row).to_have_count(4)
    page.get_by_role("button", name="Archive: Order 0 shipped").click()
    page.get_by_role("button", name="Undo").click()
    expect(row).to_have_count(4)
    page.get_by_role("button", name="Archive: Order 0 shipped").click()
    page.get_by_role("button", name="Snooze: Order 1 shipped").click()
    page.get_by_role("button", name="Tomorrow").click()
    page.get_by_role("button", name="Mark as read: Order 2 shipped").click()
    expect(row).to_have_count(2)
    for view, subjects in (("Unread", ["3"]), ("Snoozed", ["1"]), ("Archived", ["0"])):
        page.get_by_role("button", name=view, exact=True).click()
        expect(row).to_contain_text([f"Order {subject} shipped" for subject in subjects])
        expect(row).to_have_count(len(subjects))
    page.get_by_role("button", name="Move to inbox: Order 0 shipped").click()
    expect(page.get_by_text("Nothing is archived")).to_be_visible()
    page.get_by_role("button", name="Snoozed", exact=True).click()
    expect(row.locator("time")).to_contain_text("Until")
    page.get_by_role("button", name="Move to inbox now: Order 1 shipped").click()
    page.get_by_role("button", name="Inbox", exact=True).click()
    expect(row).to_have_count(4)
