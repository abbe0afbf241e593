"""A sample request for every route and method, and its effect for another client.

Braces stand for objects of the first client: see tests/api/test_isolation.py. Add an entry here for
every new route.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.support.clients.api import request


class Others(StrEnum):
    """The effect if another client sends a request about the first client's objects."""

    NOT_FOUND = "not found"
    NOTHING = "as if there were nothing: it sees nothing of the first app's, and changes nothing"
    THE_COMPANYS = "allowed: it is the company's, not an app's"
    ELSEWHERE = "for another process"
    TESTERS = "for test keys only, which have nothing of others"


@dataclass(frozen=True, kw_only=True)
class IsolationRequest:
    """A valid request of the client that owns the objects."""

    path: str
    body: Any = None
    others: Others
    why: str = ""
    """For shared objects: the decision that shares them."""
    makes: bool = False
    """Whether the request creates an object of the requesting client."""
    empty: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the answer to a client without data."""


def _own(path: str, body: Any = None) -> IsolationRequest:
    return IsolationRequest(path=path, body=body, others=Others.NOT_FOUND)


def _nothing(path: str, body: Any = None, *, makes: bool = False, **empty: Any) -> IsolationRequest:
    return IsolationRequest(path=path, body=body, others=Others.NOTHING, makes=makes, empty=empty)


def _testers(path: str, body: Any = None) -> IsolationRequest:
    return IsolationRequest(path=path, body=body, others=Others.TESTERS)


def _people(path: str, body: Any = None) -> IsolationRequest:
    return IsolationRequest(path=path, body=body, others=Others.THE_COMPANYS, why=PEOPLE)


def _words(path: str, body: Any = None) -> IsolationRequest:
    return IsolationRequest(path=path, body=body, others=Others.THE_COMPANYS, why=WORDS)


PEOPLE = "decision 10: one registry of people, devices and suppressions for all apps"
WORDS = "decision 7: types and what they say are of the installation, under a scope of their own"
ONE = "/notifications/{notification}"
ADDRESS = "/suppressions/email/held@example.com"
TYPE = "/types/{type}"
WEEKLY = {"categories": ["marketing"], "max": 3, "period_seconds": 604_800}
PARTS = {"default": {"subject": "Paid", "body": "We have it."}}
KIND = {"name": "Parcel lost", "category": "transactional", "channels": ["email"]}
HOOK = {"url": "https://hooks.example.com/", "events": ["delivery.failed"]}
DEVICE = {"user_id": "bob", "device_token": "a-token-of-bobs", "platform": "android"}
BROWSER = {
    "endpoint": "https://web.push.apple.com/next",
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcx"
        "aOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
}
AWAKE = {"online": True, "app_foreground": False, "notification_enabled": True}
BROADCAST = {
    "type": "marketing",
    "audience": {"topic": "news"},
    "content": {"subject": "Spring", "body": "It is spring."},
}
SEEN = {"fingerprint": "9f" * 32}
DECISION = {**SEEN, "reason": "The date is wrong."}

KEY = "appointment-7"
FOR_BOB = request(recipient={"email": "bob@example.com"})
FILE = {"type": "payment_confirmed", "name": "customers.csv", "size": 6}
CHUNK = {"content": "ZW1haWwK"}

SAMPLES: dict[tuple[str, str], IsolationRequest] = {
    ("notifications", "GET"): _nothing("/notifications", results=[]),
    ("notifications", "POST"): _nothing("/notifications", request(), makes=True),
    ("bulk", "POST"): _nothing("/notifications/bulk", {"notifications": [request()]}, makes=True),
    ("cleanup", "POST"): _nothing(
        "/notifications/cleanup", {"older_than_days": 30}, notifications=0
    ),
    ("cancel-entity", "POST"): _nothing(
        "/notifications/cancel", {"entity_id": "order-1"}, cancelled=0
    ),
    ("stats", "GET"): _nothing("/notifications/stats", results=[]),
    ("preview", "POST"): _nothing("/notifications/preview", request()),
    ("by-key", "PUT"): _nothing(f"/notifications/by-key/{KEY}", FOR_BOB, makes=True),
    ("notification", "GET"): _own(ONE),
    ("notification", "DELETE"): _own("/notifications/{deleted}"),
    ("attempts", "GET"): _own(f"{ONE}/attempts"),
    ("read", "POST"): _own(f"{ONE}/read"),
    ("unread", "POST"): _own(f"{ONE}/unread"),
    ("ack", "POST"): _own(f"{ONE}/ack"),
    ("cancel", "POST"): _own(f"{ONE}/cancel"),
    ("retry", "POST"): _own(f"{ONE}/retry"),
    ("resend", "POST"): _own(f"{ONE}/resend"),
    ("reschedule", "POST"): _own(f"{ONE}/reschedule", {"scheduled_at": "{tomorrow}"}),
    ("broadcasts", "GET"): _nothing("/broadcasts", results=[]),
    ("broadcasts", "POST"): _nothing("/broadcasts", BROADCAST, makes=True),
    ("broadcast-preview", "POST"): _nothing("/broadcasts/preview", BROADCAST),
    ("files", "GET"): _nothing("/files", results=[]),
    ("files", "POST"): _nothing("/files", FILE, makes=True),
    ("file", "GET"): _own("/files/{file}"),
    ("file-chunk", "PUT"): _own("/files/{file}/chunks/0", CHUNK),
    ("file-check", "POST"): _own("/files/{file}/check", {}),
    ("file-wrong-rows", "GET"): _own("/files/{file}/wrong_rows"),
    ("file-results", "GET"): _own("/files/{file}/results"),
    ("file", "DELETE"): _own("/files/{file}"),
    ("broadcast", "GET"): _own("/broadcasts/{broadcast}"),
    ("broadcast", "PUT"): _own("/broadcasts/{broadcast}", BROADCAST),
    ("broadcast-submit", "POST"): _own("/broadcasts/{broadcast}/submit"),
    # One that awaits no approval is of its client alone.
    ("broadcasts-awaiting", "GET"): _nothing("/broadcasts/awaiting", results=[]),
    ("broadcast-review", "GET"): _own("/broadcasts/{broadcast}/review"),
    ("broadcast-approve", "POST"): _own("/broadcasts/{broadcast}/approve", SEEN),
    ("broadcast-reject", "POST"): _own("/broadcasts/{broadcast}/reject", DECISION),
    ("broadcast-override", "POST"): _own("/broadcasts/{broadcast}/override", DECISION),
    ("broadcast-pause", "POST"): _own("/broadcasts/{broadcast}/pause"),
    ("broadcast-resume", "POST"): _own("/broadcasts/{broadcast}/resume"),
    ("broadcast-cancel", "POST"): _own("/broadcasts/{broadcast}/cancel"),
    ("test-clock", "GET"): _testers("/test/clock"),
    ("test-clock", "POST"): _testers("/test/clock", {"advance": "1s"}),
    ("test-clock", "DELETE"): _testers("/test/clock"),
    ("test-outbox", "GET"): _testers("/test/outbox"),
    ("test-outbox", "DELETE"): _testers("/test/outbox"),
    ("digests", "GET"): _nothing("/digests", results=[]),
    ("digest", "GET"): _own("/digests/{digest}"),
    ("digest-close", "POST"): _own("/digests/{digest}/close"),
    ("digest-cancel", "POST"): _own("/digests/{digest}/cancel"),
    ("history", "GET"): _nothing("/recipients/ada/notifications", results=[]),
    ("read-all", "POST"): _nothing("/recipients/ada/notifications/read-all", updated=0),
    ("recipients", "GET"): _people("/recipients"),
    ("recipient", "GET"): _people("/recipients/ada"),
    ("recipient", "PUT"): _people("/recipients/ada", {"name": "Ada"}),
    ("recipient", "DELETE"): _people("/recipients/eve"),
    ("recipient-export", "GET"): _people("/recipients/ada/export"),
    ("recipient-preferences", "GET"): _people("/recipients/ada/preferences"),
    ("recipient-preferences", "PUT"): _people("/recipients/ada/preferences", {"preferences": {}}),
    ("topics", "GET"): _people("/topics"),
    ("topic-members", "GET"): _people("/topics/news/members"),
    ("topic-member", "PUT"): _people("/topics/news/members/bob"),
    ("topic-member", "DELETE"): _people("/topics/news/members/ada"),
    ("suppressions", "GET"): _people("/suppressions"),
    ("suppression", "GET"): _people(ADDRESS),
    ("suppression", "PUT"): _people(ADDRESS, {}),
    ("suppression", "DELETE"): _people(ADDRESS),
    ("recipient-limits", "GET"): _people("/recipients/ada/limits"),
    ("recipient-limit", "PUT"): _people("/recipients/ada/limits/held", {"max": 1}),
    ("recipient-limit", "DELETE"): _people("/recipients/ada/limits/held"),
    ("rooms", "GET"): _words("/rooms"),
    ("limits", "GET"): _words("/limits"),
    ("limit", "GET"): _words("/limits/held"),
    ("limit", "PUT"): _words("/limits/weekly", WEEKLY),
    ("limit", "DELETE"): _words("/limits/discarded"),
    ("design", "GET"): _words("/design"),
    ("design", "POST"): _words(
        "/design", {"brands": [{"name": "acme", "brand": {"name": "Acme"}}]}
    ),
    ("type-files", "GET"): _words("/type-files"),
    ("type-files", "POST"): _words(
        "/type-files", {"types": [{"slug": "parcel_found", "definition": KIND}], "publish": True}
    ),
    ("type-files-lint", "POST"): _words(
        "/type-files/lint", {"types": [{"slug": "parcel_found", "definition": KIND}]}
    ),
    ("types", "GET"): _words("/types"),
    ("type", "GET"): _words(TYPE),
    ("type", "PUT"): _words("/types/parcel_lost", KIND),
    ("templates", "GET"): _words(f"{TYPE}/templates"),
    ("templates", "POST"): _words(f"{TYPE}/templates", {"parts": PARTS}),
    ("template-version", "GET"): _words(f"{TYPE}/templates/versions/1"),
    ("template-publish", "POST"): _words(f"{TYPE}/templates/versions/1/publish"),
    ("callbacks", "GET"): _own("/callbacks"),
    ("callbacks", "PUT"): _nothing("/callbacks", HOOK, makes=True),
    ("callbacks", "DELETE"): _own("/callbacks"),
    ("callback-secret", "POST"): _own("/callbacks/secret"),
    ("callback-test", "POST"): _own("/callbacks/test"),
    ("callback-deliveries", "GET"): _nothing("/callbacks/deliveries", results=[]),
    ("callback-replay", "POST"): _own("/callbacks/deliveries/{message}/replay"),
    ("devices", "GET"): _people("/devices?user_id=ada"),
    ("devices", "PUT"): _people("/devices", DEVICE),
    ("device", "GET"): _people("/devices/{device}"),
    ("device", "PATCH"): _people("/devices/{device}", {"app_version": "2"}),
    ("device", "DELETE"): _people("/devices/{discarded}"),
    ("device-heartbeat", "POST"): _people("/devices/{device}/heartbeat", AWAKE),
    ("device-preferences", "PUT"): _people("/devices/{device}/preferences", {"enabled": True}),
    ("device-receipts", "POST"): _own(
        "/devices/{device}/receipts", {"notification_id": "{push}", "event": "opened"}
    ),
    ("device-subscription", "PUT"): _people("/devices/{browser}/subscription", BROWSER),
    ("inbox", "GET"): _nothing("/inbox", results=[]),
    ("inbox-counts", "GET"): _nothing("/inbox/counts", unread=0, unseen=0),
    ("inbox-read-all", "POST"): _nothing("/inbox/read-all", updated=0),
    ("inbox-stream", "GET"): IsolationRequest(path="/inbox/stream", others=Others.ELSEWHERE),
    ("inbox-tokens", "POST"): _nothing("/inbox/tokens", {"user_id": "ada"}),
    ("inbox-tokens", "DELETE"): _nothing("/inbox/tokens?user_id=ada"),
    ("inbox-token", "DELETE"): _own("/inbox/tokens/{jti}"),
    ("inbox-read", "POST"): _own("/inbox/{notification}/read"),
    ("inbox-unread", "POST"): _own("/inbox/{notification}/unread"),
    ("inbox-archive", "POST"): _own("/inbox/{notification}/archive"),
    ("inbox-unarchive", "POST"): _own("/inbox/{notification}/unarchive"),
    ("inbox-push", "GET"): _nothing("/inbox/push"),
    ("inbox-push", "PUT"): _people("/inbox/push", {"subscription": BROWSER}),
    ("inbox-browser", "DELETE"): _people("/inbox/push/{browser}"),
    ("inbox-preferences", "GET"): _nothing("/inbox/preferences", preferences={}),
    ("inbox-preferences", "PUT"): _nothing("/inbox/preferences", {"preferences": {}}),
    ("inbox-action", "POST"): _own("/inbox/{notification}/actions/approve"),
    ("inbox-snooze", "POST"): _own("/inbox/{notification}/snooze", {"until": "{tomorrow}"}),
    ("inbox-unsnooze", "POST"): _own("/inbox/{notification}/unsnooze"),
}


def is_refused_as_live(answer: Any) -> bool:
    """Return whether an operation for test keys has refused a live key."""
    return answer.status_code == 403 and answer.json()["code"] == "live_key"
