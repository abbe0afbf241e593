"""The providers of rooms: each row of their tables, by the sandbox and by recorded answers."""

import html
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from domain.time import utc_now
from notifyproject.platform.event_loop import run
from providers import http, slack_bot, webhook
from providers.contract import (
    IdempotentProvider,
    Message,
    MessageLink,
    SendRequest,
    SendResult,
    SendTarget,
)
from providers.discord.provider import Discord
from providers.slack_bot.provider import SlackBot
from providers.slack_webhook.provider import SlackWebhook
from providers.teams.provider import Teams
from providers.webhook.provider import Webhook, event
from sandbox.config import Config
from sandbox.providers.rooms.receiver import SECRET
from sandbox.server import run_in_thread
from tests.support.clients.sandbox import QUICK
from tests.support.fakes import socket_server
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, SHORT

F = FailureCode
ID = "64b5f0c2a1b2c3d4e5f60718"
MESSAGE = Message(
    subject="Disk full",
    text="**db-1** is *full*: [runbook](https://wiki.example)",
    links=(MessageLink(label="Open", url="https://shop.example"),),
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_in_thread(Config(data=tmp_path_factory.mktemp("sandbox"), timings=QUICK)) as box:
        yield box.url


def request_to(
    room: str, address: str = "https://hooks.slack.com/services/T0/B0/secret", **fields: Any
) -> SendRequest:
    return SendRequest(
        reference=f"{ID}.room.1",
        notification_id=ID,
        recipient=address,
        message=MESSAGE,
        category="alert",
        scope=room,
        **fields,
    )


def providers(url: str) -> dict[str, Any]:
    box = {"base_url": url, "clock": utc_now}
    return {
        "slack_webhook": SlackWebhook(**box, is_sandbox=True),
        "slack_bot": SlackBot(**box, token=slack_bot.SANDBOX_KEY, is_sandbox=True),
        "teams": Teams(**box, is_sandbox=True),
        "discord": Discord(**box, is_sandbox=True),
        "webhook": Webhook(**box, secret=webhook.SANDBOX_KEY),
    }


def outcome_of(
    provider: Any, request: SendRequest, *, timeout: float = LIMIT
) -> SendResult | ProviderError:
    try:
        return run(provider.send(request, timeout=timeout))
    except ProviderError as error:
        return error


GONE = (InvalidRecipientError, F.ROOM_GONE)
UNAVAILABLE = (ProviderUnavailableError, F.CHANNEL_UNAVAILABLE)
RATE = (TransientError, F.RATE_LIMITED)
ERROR = (TransientError, F.PROVIDER_ERROR)
REJECTED = (PermanentError, F.REJECTED)
TABLE = {
    "slack_webhook": {
        **dict.fromkeys(
            ("no-service", "no-active-hooks", "invalid-token", "channel-not-found"), GONE
        ),
        **dict.fromkeys(("channel-is-archived", "no-team", "team-disabled", "gone"), GONE),
        "action-prohibited": UNAVAILABLE,
        "posting-to-general-channel-denied": UNAVAILABLE,
        "too-many-attachments": REJECTED,
        "ratelimit": RATE,
        "rollup-error": ERROR,
        "server-error": ERROR,
        "unavailable": ERROR,
        "bad-gateway": ERROR,
        "redirect": UNAVAILABLE,
    },
    "slack_bot": {
        "is-archived": GONE,
        "channel-not-found": UNAVAILABLE,
        **dict.fromkeys(("not-in-channel", "restricted-action", "ekm-access-denied"), UNAVAILABLE),
        **dict.fromkeys(("restricted-action-read-only-channel", "no-permission"), UNAVAILABLE),
        **dict.fromkeys(("missing-scope", "invalid-auth", "token-revoked"), UNAVAILABLE),
        **dict.fromkeys(("token-expired", "account-inactive"), UNAVAILABLE),
        "rate-limited": RATE,
        "message-limit-exceeded": RATE,
        "ratelimit": RATE,
        "service-unavailable": ERROR,
        "team-added-to-org": ERROR,
        "msg-too-long": REJECTED,
        "as-user-not-supported": REJECTED,
        "server-error": ERROR,
        "bad-gateway": ERROR,
        "redirect": UNAVAILABLE,
    },
    "teams": {
        "not-found": GONE,
        "not-enabled": UNAVAILABLE,
        "bad-signature": UNAVAILABLE,
        "forbidden": UNAVAILABLE,
        "bad-schema": REJECTED,
        "ratelimit": RATE,
        "server-error": ERROR,
        "bad-gateway": ERROR,
        "redirect": UNAVAILABLE,
    },
    "discord": {
        "unknown-webhook": GONE,
        "invalid-token": GONE,
        "missing-permissions": UNAVAILABLE,
        "blocked": UNAVAILABLE,
        "ratelimit": RATE,
        "ratelimit-shared": RATE,
        "ratelimit-global": RATE,
        "server-error": ERROR,
        "unavailable": ERROR,
        "bad-gateway": ERROR,
        "redirect": UNAVAILABLE,
    },
    "webhook": {
        "gone": GONE,
        "unauthorized": UNAVAILABLE,
        "forbidden": UNAVAILABLE,
        "not-found": REJECTED,
        "unprocessable": REJECTED,
        "ratelimit": RATE,
        "gateway-timeout": (TransientError, F.PROVIDER_ERROR),
        "server-error": ERROR,
        "bad-gateway": ERROR,
        "redirect": UNAVAILABLE,
    },
}
ACCOUNT_WIDE = {
    ("slack_bot", name)
    for name in (
        "missing-scope",
        "invalid-auth",
        "token-revoked",
        "token-expired",
        "account-inactive",
        "message-limit-exceeded",
        "redirect",
    )
} | {("discord", "ratelimit-global"), ("discord", "blocked")}
"""Answers that concern all rooms of the account."""
AMBIGUOUS = {("slack_bot", "fatal-error"), ("slack_bot", "internal-error")}


@pytest.mark.parametrize("kind", list(TABLE))
def test_each_answer_has_its_class(url: str, kind: str) -> None:
    provider = providers(url)[kind]
    for name, (error_class, code) in TABLE[kind].items():
        error = outcome_of(provider, request_to(f"{name}-1"))
        assert type(error) is error_class, (name, error)
        assert error.code is code, name
        is_unclear = name == "gateway-timeout" or (kind, name) == ("slack_bot", "server-error")
        assert not getattr(error, "is_ambiguous", False) or is_unclear
        assert (error.scope is None) == ((kind, name) in ACCOUNT_WIDE) or code in (
            F.ROOM_GONE,
            F.REJECTED,
        )
        if code is F.RATE_LIMITED:
            assert error.retry_after or error.response.status == 200, name


@pytest.mark.parametrize("kind", list(TABLE))
def test_accepted_message_is_delivered_where_the_answer_says_so(url: str, kind: str) -> None:
    result = outcome_of(providers(url)[kind], request_to("posted-ops"))
    assert isinstance(result, SendResult), result
    assert result.is_delivered == (kind != "teams")
    assert bool(result.provider_id) == (kind in ("slack_bot", "discord"))


@pytest.mark.parametrize("kind", list(TABLE))
def test_lost_answer_is_ambiguous_and_of_the_room(url: str, kind: str) -> None:
    provider = providers(url)[kind]
    for name, timeout in (("timeout", SHORT), ("reset", LIMIT), ("truncated", LIMIT)):
        error = outcome_of(provider, request_to(f"{name}-1"), timeout=timeout)
        if kind in ("webhook", "teams") and name == "truncated":
            # The status is whole, and the answer has no body.
            continue
        assert isinstance(error, TransientError), (name, error)
        assert (error.is_ambiguous, error.scope) == (True, f"{name}-1")


def test_acceptance_that_is_none_is_ambiguous(url: str) -> None:
    for kind, name in (
        ("slack_webhook", "not-ok"),
        ("slack_bot", "empty"),
        ("discord", "no-id"),
        *AMBIGUOUS,
    ):
        error = outcome_of(providers(url)[kind], request_to(f"{name}-1"))
        assert isinstance(error, TransientError), (kind, name, error)
        assert error.is_ambiguous


def test_full_bucket_of_discord_pauses_the_room_before_a_refusal(url: str) -> None:
    provider = providers(url)["discord"]
    results = [outcome_of(provider, request_to("posted-bucket")) for _ in range(5)]
    assert [bool(result.pause) for result in results] == [False] * 4 + [True]
    refused = outcome_of(provider, request_to("posted-bucket"))
    assert refused.code is F.RATE_LIMITED
    assert 0 < refused.retry_after <= 2


def test_url_of_a_room_stays_as_it_is_and_appears_nowhere(url: str) -> None:
    signed = (
        "https://prod-11.westeurope.logic.azure.com:443/workflows/abc/triggers/manual/paths/invoke"
        "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=c-3iiBj_YinO64"
    )
    handler = socket_server.KeepAlive(socket_server.response(401, f"bad {signed}".encode()))
    with socket_server.serving(handler) as server:
        provider = Teams(base_url=server.url, clock=utc_now)
        error = outcome_of(provider, request_to("ops", signed))
    assert handler.requests[0].startswith(
        b"POST /workflows/abc/triggers/manual/paths/invoke"
        b"?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=c-3iiBj_YinO64 HTTP/1.1"
    )
    shown = f"{error!r} {error.reason} {error.response} {provider!r}"
    assert "c-3iiBj" not in shown


SIGNED = (
    "https://prod-11.westeurope.logic.azure.com/workflows/0c9d8e7f6a5b4c3d2e1f/run"
    "?sp=%2Ftriggers&sig=c-3iiBj_YinO64%2BqYqy64xyz"
)
SIGNATURE = "c-3iiBj_YinO64"


@each_case(
    "quoted",
    [
        SIGNED,
        SIGNED.partition(".com")[2],
        f'<a href="{html.escape(SIGNED)}">',
        html.escape(SIGNED.partition(".com")[2]),
        "sig=c-3iiBj_YinO64%2BqYqy64xyz",
        "the signature c-3iiBj_YinO64+qYqy64xyz is wrong",
        "workflow 0c9d8e7f6a5b4c3d2e1f, /run",
        f"{'-' * (http.EXCERPT_LENGTH - 30)} c-3iiBj_YinO64%2BqYqy64xyz",
        f"12 34 56 78 {SIGNED} 12345678",
    ],
)
def test_answer_that_quotes_the_credential_is_stored_without_it(quoted: str) -> None:
    answer = socket_server.response(401, f"Bad request: {quoted}".encode())
    with socket_server.serving(socket_server.answering(answer)) as server:
        error = outcome_of(Teams(base_url=server.url, clock=utc_now), request_to("ops", SIGNED))
    assert error.response.excerpt.startswith("Bad request: ")
    for part in (SIGNATURE, "0c9d8e7f6a5b4c3d2e1f"):
        assert part not in error.response.excerpt


def test_error_code_that_is_the_credential_is_hidden() -> None:
    address = "https://hooks.slack.com/services/T0/B0/abcdefghijklmnopqrstuvwx"
    answer = socket_server.response(400, b"abcdefghijklmnopqrstuvwx")
    with socket_server.serving(socket_server.answering(answer)) as server:
        error = outcome_of(
            SlackWebhook(base_url=server.url, clock=utc_now), request_to("ops", address)
        )
    assert "abcdef" not in f"{error.reason} {error.response}"


BOT = partial(SlackBot, token="xoxb-1")
RECEIVER = partial(Webhook, secret=SECRET)
UNCLEAR = (TransientError, F.PROVIDER_ERROR)


def bot(error: str) -> bytes:
    """Return what Slack's Web API answers to a bot."""
    return json.dumps({"ok": False, "error": error}).encode()


RECORDED = [
    *(
        (SlackWebhook, status, name, GONE)
        for status, name in (
            (404, b"no_service"),
            (403, b"invalid_token"),
            (404, b"no_active_hooks"),
            (404, b"channel_not_found"),
            (410, b"channel_is_archived"),
            (404, b"no_team"),
            (403, b"team_disabled"),
            (410, b""),
        )
    ),
    (SlackWebhook, 403, b"action_prohibited", UNAVAILABLE),
    (SlackWebhook, 403, b"posting_to_general_channel_denied", UNAVAILABLE),
    *(
        (SlackWebhook, 400, name, REJECTED)
        for name in (
            b"invalid_payload",
            b"no_text",
            b"invalid_blocks",
            b"msg_blocks_too_long",
            b"too_many_attachments",
        )
    ),
    (SlackWebhook, 429, b"rate_limited", RATE),
    (SlackWebhook, 500, b"rollup_error", ERROR),
    (BOT, 200, bot("is_archived"), GONE),
    *(
        (BOT, 200, bot(name), UNAVAILABLE)
        for name in (
            "channel_not_found",
            "not_in_channel",
            "no_permission",
            "restricted_action",
            "restricted_action_read_only_channel",
            "restricted_action_thread_only_channel",
            "restricted_action_non_threadable_channel",
            "ekm_access_denied",
            "missing_scope",
            "invalid_auth",
            "not_authed",
            "token_revoked",
            "token_expired",
            "account_inactive",
        )
    ),
    *((BOT, 200, bot(name), RATE) for name in ("ratelimited", "rate_limited")),
    (BOT, 200, bot("message_limit_exceeded"), RATE),
    (BOT, 429, bot("ratelimited"), RATE),
    *((BOT, 200, bot(name), ERROR) for name in ("service_unavailable", "team_added_to_org")),
    *((BOT, 200, bot(name), UNCLEAR) for name in ("fatal_error", "internal_error")),
    *(
        (BOT, 200, bot(name), REJECTED)
        for name in ("no_text", "invalid_blocks", "msg_blocks_too_long", "too_many_attachments")
    ),
    (BOT, 503, b"", ERROR),
    (Teams, 202, b"", None),
    (Teams, 200, b"1", None),
    (
        Teams,
        401,
        b'{"error":{"code":"DirectApiAuthorizationRequired","message":"Shared Access only."}}',
        UNAVAILABLE,
    ),
    (Teams, 403, b"", UNAVAILABLE),
    (Teams, 404, b'{"error":{"code":"WorkflowNotFound","message":"\'\'."}}', GONE),
    (
        Teams,
        400,
        b'{"error":{"code":"TriggerInputSchemaMismatch","message":"Required properties."}}',
        REJECTED,
    ),
    (Teams, 429, b'{"error":{"code":"WorkflowRunRateLimited","message":"Later."}}', RATE),
    (Teams, 502, b'{"error":{"code":"NoResponse","message":"No response."}}', ERROR),
    (Discord, 404, b'{"message": "Unknown Webhook", "code": 10015}', GONE),
    (Discord, 401, b'{"message": "Invalid Webhook Token", "code": 50027}', GONE),
    (Discord, 400, b'{"embeds": ["0"]}', REJECTED),
    (Discord, 400, b'{"message": "Cannot send an empty message", "code": 50006}', REJECTED),
    (Discord, 400, b'{"message": "Invalid Form Body", "code": 50035, "errors": {}}', REJECTED),
    (Discord, 403, b'{"message": "internal network error", "code": 40333}', UNAVAILABLE),
    (Discord, 403, b'{"message": "Missing Permissions", "code": 50013}', UNAVAILABLE),
    (
        Discord,
        429,
        b'{"message": "You are being rate limited.", "retry_after": 64.57, "global": false}',
        RATE,
    ),
    (Discord, 429, b"error code: 1015", RATE),
    (Discord, 500, b'{"message": "500: Internal Server Error", "code": 0}', ERROR),
    (Discord, 503, b"upstream connect error", ERROR),
    (RECEIVER, 204, b"", None),
    (RECEIVER, 410, b"", GONE),
    *((RECEIVER, status, b"", UNAVAILABLE) for status in (301, 401, 403)),
    (RECEIVER, 429, b"", RATE),
    *((RECEIVER, status, b"", ERROR) for status in (502, 503)),
    (RECEIVER, 504, b"", UNCLEAR),
    *((RECEIVER, status, b"", REJECTED) for status in (400, 404, 422)),
]


@each_case("provider, status, body, expected", RECORDED)
def test_recorded_answer_has_its_class(
    provider: Any, status: int, body: bytes, expected: tuple[type, FailureCode] | None
) -> None:
    with socket_server.serving(
        socket_server.answering(socket_server.response(status, body))
    ) as server:
        found = outcome_of(provider(base_url=server.url, clock=utc_now), request_to("ops"))
    if expected is None:
        assert isinstance(found, SendResult)
        return
    assert (type(found), found.code) == expected


def test_banned_address_is_no_matter_of_one_room() -> None:
    answer = socket_server.response(429, b"error code: 1015", "Retry-After: 600")
    with socket_server.serving(socket_server.answering(answer)) as server:
        error = outcome_of(Discord(base_url=server.url, clock=utc_now), request_to("ops"))
    assert (error.scope, error.retry_after) == (None, 600)


def test_event_has_the_same_bytes_and_id_at_each_attempt(url: str) -> None:
    first = request_to("received-1")
    again = replace(first, reference=f"{ID}.room.2")
    assert event(first) == event(again)
    body = json.loads(event(first))
    assert body["type"] == "message"
    assert body["timestamp"] == datetime.fromtimestamp(int(ID[:8], 16), UTC).isoformat().replace(
        "+00:00", "Z"
    )
    assert body["data"]["text"] == "db-1 is full: runbook (https://wiki.example)"
    assert SECRET == webhook.SANDBOX_KEY


def test_receivers_of_webhooks_alone_drop_a_repeat() -> None:
    by_kind = providers("http://127.0.0.1:1")
    found = {k: p.idempotency for k, p in by_kind.items() if isinstance(p, IdempotentProvider)}
    assert found == {"webhook": timedelta(days=1)}


@each_case(
    "address, reason",
    [
        ("https://localhost/hook", "Expected a host on the public Internet."),
        ("https://10.0.0.1/hook", "Expected a host on the public Internet."),
        ("https://127.0.0.1.nip.io.invalid/hook", "DNS lookup of the receiver failed."),
        ("http://shop.example/hook", "Expected a URL that begins with https://."),
    ],
)
def test_receiver_is_on_the_public_internet(address: str, reason: str) -> None:
    error = outcome_of(Webhook(clock=utc_now), request_to("ops", address, secrets=(SECRET,)))
    assert (error.reason, error.scope) == (reason, "ops")


def test_lookup_that_hangs_ends_with_the_request() -> None:
    is_over = threading.Event()

    def hang(_host: str, port: int) -> list[tuple[str, int]]:
        is_over.wait()
        return [("203.0.113.1", port)]

    provider = Webhook(clock=utc_now, find=hang)
    request = request_to("ops", "https://shop.example/hook", secrets=(SECRET,))
    try:
        error = outcome_of(provider, request, timeout=SHORT)
    finally:
        is_over.set()
    assert (error.reason, error.code, error.scope) == (
        "DNS lookup of the receiver failed.",
        F.CONNECTION_FAILED,
        "ops",
    )
    assert not error.is_ambiguous


def test_invalid_url_concerns_its_room_alone() -> None:
    error = outcome_of(SlackWebhook(clock=utc_now), request_to("ops", "nothing"))
    assert (type(error), error.scope) == (ProviderUnavailableError, "ops")


def test_each_provider_accepts_rooms_of_its_kind() -> None:
    for kind, provider in providers("http://127.0.0.1:1").items():
        for other in TABLE:
            target = SendTarget(address="x", room="ops", transport=other)
            assert provider.accepts(target) == (other == kind)
            assert provider.scope(target) == "ops"


def test_secrets_are_in_no_representation() -> None:
    target = SendTarget(address="https://secret", room="ops", secrets=("whsec_secret",))
    request = request_to("ops", secrets=("whsec_secret",))
    assert "secret" not in repr(target)
    assert "whsec_secret" not in repr(request)
    assert "xoxb-secret" not in repr(SlackBot(token="xoxb-secret", base_url="", clock=utc_now))
