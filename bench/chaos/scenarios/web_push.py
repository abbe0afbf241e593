"""Faults of web push: a push service is down, and the wrong key is configured."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from domain.time import utc_now
from sandbox import credentials
from sandbox.log import REQUESTS_FILE, Record, read_records
from sandbox.providers.webpush.browsers import Browsers

from ..analysis import final_statuses
from ..evidence import Request
from ..findings import Bound, Findings, at_most, make_findings, p99_bounds, scenario
from ..installation import Installation, run_installation
from ..load import Body, push_body

APPLE = "web.push.apple.com"
OTHERS = (
    "fcm.googleapis.com",
    "updates.push.services.mozilla.com",
    "wns2-par02p.notify.windows.com",
)
HOSTS = (*OTHERS, APPLE)
DOWN, SHOWN = "unavailable", "shown"
NEW_EVERY = 4
"""One browser of so many at each service subscribed after the rotation."""
MAX_REFUSED = 200
"""Requests of a worker to one service that are in flight when its circuit opens, and probes."""
FINAL_SECONDS = 1_800.0


@scenario(
    41,
    injects="Apple's push service is down; then the wrong VAPID key after a rotation",
    shows="other services aren't slower; no browser is deactivated, and the right key reaches all",
    full={"subscriptions": 10_000, "rate": 4.0, "usual": 120, "down": 600, "wrong": 300},
    short={"subscriptions": 240, "rate": 6.0, "usual": 20, "down": 40, "wrong": 40},
)
def push_services_that_fail(
    *, subscriptions: int, rate: float, usual: int, down: int, wrong: int
) -> Findings:
    """Push beside an outage of Apple, and then to everybody with a key that nobody knows."""
    from devices.push_keys import new_key

    old, new, unknown = new_key(), new_key(), new_key()
    variables = {
        "WEBPUSH_KEYS": f"{new.private_text},{old.private_text}",
        "WEBPUSH_SUBJECT": "mailto:push@example.com",
    }
    with run_installation(environment=variables) as installation:
        _subscribe(installation, subscriptions, keys=(new.public_text, old.public_text))
        worker = installation.worker()
        installation.start(installation.web(), worker, installation.beat())
        safari, others = _users(subscriptions, APPLE), _users(subscriptions, *OTHERS)
        push = partial(_push, installation, rate=rate)
        push("before", others, seconds=usual).finish()
        unsent = push("apple", safari, seconds=down)
        push("beside", others, seconds=down).finish()
        unsent.finish()
        asked = sum(not record.accepted for record in _records(installation))
        installation.script_outcome("webpush:*", SHOWN)
        installation.wait_final(timeout=FINAL_SECONDS)
        worker.terminate()
        installation.start(worker, WEBPUSH_KEYS=unknown.private_text)
        everybody = _users(subscriptions, *HOSTS)
        installation.client.send_in_bulk(
            subscriptions, body=partial(_body, everybody), name="everybody"
        )
        time.sleep(wrong)
        refused = sum(not record.accepted for record in _records(installation)) - asked
        counted = _counted_attempts(installation)
        inactive = installation.database["devices"].count_documents({"is_active": False})
        worker.terminate()
        installation.start(worker)
        seconds = installation.wait_final(timeout=FINAL_SECONDS)
        evidence = installation.collect_evidence()
        evidence = replace(evidence, requests=_requests(_records(installation)))
        ends = final_statuses(evidence)
        return make_findings(
            evidence,
            *p99_bounds(
                evidence,
                before="p99 of other services in seconds before",
                beside="p99 of other services in seconds beside",
            ),
            Bound("requests to Apple while it was down", asked, minimum=1, maximum=MAX_REFUSED),
            Bound(
                "requests with the wrong key",
                refused,
                minimum=len(HOSTS),
                maximum=len(HOSTS) * MAX_REFUSED,
            ),
            at_most("attempts with it that counted against the limit", counted, 0),
            at_most("browsers that were deactivated", inactive, 0),
            at_most("seconds until all were reached with the right key", seconds, FINAL_SECONDS),
            at_most("pushes that weren't sent", sum(ends.values()) - ends.get("sent", 0), 0),
            copies="none",
        )


def _subscribe(installation: Installation, count: int, *, keys: Sequence[str]) -> None:
    """Register a browser of each user, of which some know the new key and others the old one."""
    # The service's modules need its settings, which exist only after the servers started.
    from devices import registration
    from devices.models import Platform
    from domain.web_push import Subscription, decode_base64url, fingerprint

    new, old = keys
    secret = credentials.ensure_browsers_secret(installation.folder / "sandbox")
    origin = installation.environment["SANDBOX_URL"]
    for number in range(count):
        host = HOSTS[number % len(HOSTS)]
        key = old if number // len(HOSTS) % NEW_EVERY else new
        name = f"{DOWN if host == APPLE else SHOWN}-{number}"
        made: Any = Browsers(secret).subscribe(origin=origin, host=host, name=name, key=key)
        subscription = Subscription(
            endpoint=made["endpoint"],
            host=host,
            p256dh=decode_base64url(made["keys"]["p256dh"]),
            auth=decode_base64url(made["keys"]["auth"]),
            fingerprint=fingerprint(decode_base64url(key)),
        )
        device = registration.Registration(
            user_id=_user(number), token=subscription, platform=Platform.WEB
        )
        registration.register(device, now=utc_now())


def _user(number: int) -> str:
    return f"user-{number}"


def _users(count: int, *hosts: str) -> list[str]:
    """Return the users whose browser is at one of these push services."""
    return [_user(number) for number in range(count) if HOSTS[number % len(HOSTS)] in hosts]


def _push(
    installation: Installation, name: str, users: Sequence[str], *, rate: float, seconds: int
) -> Any:
    """Start a load that goes to each user in turn."""
    body = partial(_body, users)
    return installation.start_load(count=int(rate * seconds), rate=rate, body=body, name=name)


def _body(users: Sequence[str], number: int) -> Body:
    return push_body(number, user_id=users[number % len(users)])


def _records(installation: Installation) -> list[Record]:
    path = installation.folder / "sandbox" / REQUESTS_FILE
    return [record for record in read_records(path) if record.is_message]


def _requests(records: Sequence[Record]) -> tuple[Request, ...]:
    """Return pushes as evidence. A push names its notification, but no attempt."""
    earlier, found = Counter[tuple[str, str]](), list[Request]()
    for record in records:
        key = (record.references[0], record.recipients[0])
        earlier[key] += 1
        found.append(
            Request(
                notification_id=key[0],
                channel="push",
                attempt=earlier[key],
                device_id=key[1],
                at=record.time,
                accepted=record.accepted,
            )
        )
    return tuple(found)


def _counted_attempts(installation: Installation) -> int:
    """Return how many attempts of open pushes were counted against the limit."""
    waiting = installation.database["notifications"].find({"due_at": {"$exists": True}})
    deliveries = [delivery for push in waiting for delivery in push["delivery"]]
    return sum(
        delivery["attempt_count"] - delivery.get("uncounted_attempts", 0) for delivery in deliveries
    )
