"""The sandbox's rooms: Slack, Teams, Discord, and a receiver of signed webhooks."""

import json
import time
from typing import Any

from sandbox.providers.rooms import discord
from sandbox.providers.rooms.cards import markdown, slack
from tests.support.clients.sandbox import Box
from tests.support.providers.sandbox_rooms import (
    SIGNED_QUERY,
    card,
    post_as_bot,
    post_to_discord,
    post_to_receiver,
    post_to_slack,
    post_to_teams,
    signed,
)
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

EVENT = json.dumps({"type": "alert", "timestamp": "…", "data": {"text": "Hello"}}).encode()


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def button(url: str, **fields: Any) -> dict[str, Any]:
    label = {"type": "plain_text", "text": "Open"}
    return {"type": "actions", "elements": [{"type": "button", "text": label, "url": url} | fields]}


def header(text: str) -> dict[str, Any]:
    return {"type": "header", "text": {"type": "plain_text", "text": text}}


def test_slack_webhook_answers_ok_and_nothing_else(shared_box: Box) -> None:
    answer = post_to_slack(shared_box, text="Hello", blocks=[header("Title"), section("*Hello*")])
    assert (answer.status, answer.data) == (200, b"ok")
    (shown,) = shared_box.control("GET", "/messages")["results"]
    assert (shown["subject"], shown["text"], shown["to"]) == ("Title", "Hello", ["posted-1"])
    assert shown["reference"] == "ref-1"
    assert "<b>Hello</b>" in shown["html"]


@each_case(
    "token, status, text",
    [
        ("no-service-1", 404, "no_service"),
        ("channel-is-archived-1", 410, "channel_is_archived"),
        ("action-prohibited-1", 403, "action_prohibited"),
        ("gone-1", 410, ""),
        ("ratelimit-1", 429, "rate_limited"),
        ("server-error-1", 500, ""),
    ],
)
def test_slack_webhook_refuses_by_its_token(
    shared_box: Box, token: str, status: int, text: str
) -> None:
    answer = post_to_slack(shared_box, token)
    assert (answer.status, answer.data.decode()) == (status, text)
    assert ("Retry-After" in answer.headers) == (status == 429)
    assert not shared_box.requests()[0]["accepted"]


@each_case(
    "blocks",
    [
        ([section("x" * 3001)],),
        ([section("")],),
        ([header("x" * 151)],),
        ([section("x")] * 51,),
        ([button("ftp://example.com")],),
        ([{"type": "rich"}],),
        ("no list",),
    ],
)
def test_slack_refuses_blocks_that_break_its_rules(shared_box: Box, blocks: Any) -> None:
    assert post_to_slack(shared_box, text="x", blocks=blocks).data == b"invalid_blocks"
    refused = post_as_bot(shared_box, text="x", blocks=blocks).json()
    assert (refused["ok"], refused["error"]) == (False, "invalid_blocks")
    assert refused["response_metadata"]["messages"][0].startswith("[ERROR] ")


def test_slack_refuses_too_many_characters_in_all_blocks(shared_box: Box) -> None:
    blocks = [section("x" * 2900)] * 5
    assert post_to_slack(shared_box, text="x", blocks=blocks).data == b"msg_blocks_too_long"


def test_slack_webhook_needs_json_and_a_text(shared_box: Box) -> None:
    assert post_to_slack(shared_box, thread="x").data == b"no_text"
    path = "/services/T0/B0/posted"
    for raw, kind in (
        (b"{", "application/json"),
        (b"{}", "text/plain"),
        (b"[]", "application/json"),
    ):
        headers = {"Content-Type": kind}
        answer = shared_box.call("POST", path, raw, headers=headers, timeout=LIMIT)
        assert (answer.status, answer.data) == (400, b"invalid_payload")


def test_slack_bot_gets_200_for_errors_too(shared_box: Box) -> None:
    accepted = post_as_bot(shared_box, "C0OPS").json()
    assert accepted["ok"]
    recorded = shared_box.requests()[0]
    assert recorded["message_id"] == f"C0OPS:{accepted['ts']}"
    assert "authorization" not in recorded["headers"]
    for channel, token, error in (
        ("not-in-channel-1", "xoxb-1", "not_in_channel"),
        ("fatal-error-1", "xoxb-1", "fatal_error"),
        ("posted", None, "not_authed"),
        ("posted", "xoxp-1", "invalid_auth"),
        ("posted", "xoxb-revoked", "token_revoked"),
    ):
        answer = post_as_bot(shared_box, channel, token=token)
        assert (answer.status, answer.json()["error"]) == (200, error)
        assert not shared_box.requests()[0]["accepted"]


def test_slack_bot_has_a_429_with_a_pause(shared_box: Box) -> None:
    answer = post_as_bot(shared_box, "ratelimit-long-1")
    assert (answer.status, answer.json()["error"]) == (429, "ratelimited")
    assert answer.headers["Retry-After"] == "3600"


def test_teams_answers_202_before_its_workflow_runs(shared_box: Box) -> None:
    good = post_to_teams(shared_box, **card("Hello"))
    assert (good.status, good.data, shared_box.requests()[0]["accepted"]) == (202, b"", True)
    for body in (
        card(""),
        card("Hello", version="1.9"),
        card("x" * 14_300),
        {"type": "message", "attachments": None},
        {"type": "message", "attachments": []},
        {"text": "as an Office 365 connector"},
        card("Hello", actions=[{"type": "Action.Submit", "title": "x"}]),
    ):
        answer = post_to_teams(shared_box, **body)
        assert (answer.status, shared_box.requests()[0]["accepted"]) == (202, False)
        assert shared_box.requests()[0]["reason"].startswith("The workflow fails")


def test_teams_needs_the_signature_of_its_url(shared_box: Box) -> None:
    assert post_to_teams(shared_box, query="").status == 401
    assert post_to_teams(shared_box, query=SIGNED_QUERY.partition("&sig")[0]).status == 401
    path = "/powerautomate/automations/direct/cu/01/workflows/posted/triggers/manual/paths/invoke"
    moved = shared_box.call("POST", path + SIGNED_QUERY, card("x"), headers={}, timeout=LIMIT)
    assert moved.status == 202


@each_case(
    "workflow, status, code",
    [
        ("not-found-1", 404, "WorkflowNotFound"),
        ("not-enabled-1", 400, "WorkflowTriggerIsNotEnabled"),
        ("bad-signature-1", 401, "DirectApiAuthorizationRequired"),
        ("ratelimit-1", 429, "RateLimitExceeded"),
        ("server-error-1", 500, "InternalServerError"),
    ],
)
def test_teams_refuses_by_the_workflow(
    shared_box: Box, workflow: str, status: int, code: str
) -> None:
    answer = post_to_teams(shared_box, workflow)
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)


def test_discord_returns_the_message_only_if_the_client_waits(shared_box: Box) -> None:
    waited = post_to_discord(shared_box, "posted-a")
    assert (waited.status, waited.json()["id"]) == (200, shared_box.requests()[0]["message_id"])
    answer = post_to_discord(shared_box, "posted-b", query="")
    assert (answer.status, answer.data) == (204, b"")


@each_case(
    "body, code",
    [
        ({"content": "x" * 2001}, 50035),
        ({"embeds": [{"title": "x" * 257}]}, 50035),
        ({"embeds": [{"description": "x" * 4097}]}, 50035),
        ({"embeds": [{"fields": [{"name": "x", "value": ""}]}]}, 50035),
        ({"embeds": [{"description": "x" * 4000}, {"description": "x" * 2001}]}, 50035),
        ({"embeds": [{"title": "x", "url": "javascript:0"}]}, 50035),
        ({"embeds": [{}] * 11}, 50035),
        ({"content": ""}, 50006),
    ],
)
def test_discord_refuses_what_breaks_its_limits(
    shared_box: Box, body: dict[str, Any], code: int
) -> None:
    answer = post_to_discord(shared_box, **body)
    assert (answer.status, answer.json()["code"]) == (400, code)


def test_discord_webhook_takes_five_messages_in_two_seconds(shared_box: Box) -> None:
    answers = [post_to_discord(shared_box) for _ in range(discord.BUCKET_SIZE)]
    left = [answer.headers["X-RateLimit-Remaining"] for answer in answers]
    assert left == ["4", "3", "2", "1", "0"]
    refused = post_to_discord(shared_box)
    assert refused.status == 429
    assert 0 < refused.json()["retry_after"] <= discord.BUCKET_SECONDS
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert post_to_discord(shared_box, "posted-2").status == 200


def test_discord_bans_an_address_that_ignores_refusals(shared_box: Box) -> None:
    for number in range(discord.BAN_AFTER):
        assert post_to_discord(shared_box, f"invalid-token-{number}").status == 401
    banned = post_to_discord(shared_box, "posted-1")
    assert (banned.status, banned.data) == (429, b"error code: 1015")
    assert "X-RateLimit-Remaining" not in banned.headers
    shared_box.control("POST", "/reset")
    assert post_to_discord(shared_box, "posted-1").status == 200


def test_discord_counts_no_404_and_no_shared_limit_towards_the_ban(shared_box: Box) -> None:
    for number in range(discord.BAN_AFTER):
        name = "unknown-webhook" if number % 2 else "ratelimit-shared"
        post_to_discord(shared_box, f"{name}-{number}")
    assert post_to_discord(shared_box, "posted-1").status == 200


def test_receiver_verifies_each_signature(shared_box: Box) -> None:
    assert post_to_receiver(shared_box, EVENT, **signed(EVENT)).status == 204
    assert shared_box.requests()[0]["references"] == ["msg_1"]
    other = "whsec_" + "QUJD" * 8
    for headers, status in (
        (signed(EVENT, secret=other), 401),
        (signed(EVENT + b" "), 401),
        ({}, 400),
        (signed(EVENT, at=time.time() - 301), 400),
    ):
        assert post_to_receiver(shared_box, EVENT, **headers).status == status
    rotated = signed(EVENT)
    rotated["webhook-signature"] = f"v1,AAAA {rotated['webhook-signature']}"
    assert post_to_receiver(shared_box, EVENT, **rotated).status == 204


def test_receiver_takes_an_id_once(shared_box: Box) -> None:
    for name, is_taken in (("gone-1", False), ("a-1", True), ("a-1", False), ("a-2", True)):
        answer = post_to_receiver(shared_box, EVENT, name, **signed(EVENT))
        assert answer.status == (410 if name == "gone-1" else 204)
        assert shared_box.requests()[0]["accepted"] is is_taken
    assert len(shared_box.control("GET", "/messages")["results"]) == 2


def test_receiver_needs_the_form_of_an_event(shared_box: Box) -> None:
    for raw in (b"{}", b'{"type": "x"}', b'{"type": "x", "data": []}', b"x"):
        assert post_to_receiver(shared_box, raw, **signed(raw)).status == 400


@each_case(
    "name, status",
    [
        ("gone", 410),
        ("unauthorized", 401),
        ("not-found", 404),
        ("gateway-timeout", 504),
        ("redirect", 302),
    ],
)
def test_receiver_answers_by_its_name(shared_box: Box, name: str, status: int) -> None:
    answer = post_to_receiver(shared_box, EVENT, f"{name}-1", **signed(EVENT))
    assert answer.status == status


@each_case(
    "text, shown",
    [
        ("a &lt;b&gt; &amp; c", "a &lt;b&gt; &amp; c"),
        ("*bold* _it_ `x*y*`", "<b>bold</b> <i>it</i> <code>x*y*</code>"),
        ("<https://a.example|A &amp; B>", '<a href="https://a.example">A &amp; B</a>'),
        ("<!here> <@U1>", '<span class="mention">@here</span> <span class="mention">@U1</span>'),
        ("2*3*4 snake_case_name", "2*3*4 snake_case_name"),
    ],
)
def test_mrkdwn_is_shown_as_slack_shows_it(text: str, shown: str) -> None:
    assert slack(text) == shown


@each_case(
    "text, shown",
    [
        (r"\*a\* \[b\](c) <i>", "*a* [b](c) &lt;i&gt;"),
        ("**bold** *it* `x`", "<b>bold</b> <i>it</i> <code>x</code>"),
        (r"[A \] B](https://a.example/\(1\))", '<a href="https://a.example/(1)">A ] B</a>'),
        (
            "@everyone <@123>",
            '<span class="mention">@everyone</span> <span class="mention">&lt;@123&gt;</span>',
        ),
    ],
)
def test_markdown_is_shown_as_discord_shows_it(text: str, shown: str) -> None:
    assert markdown(text) == shown


def test_outbox_shows_the_card(shared_box: Box) -> None:
    post_to_slack(
        shared_box, text="x", blocks=[header("Down"), section("*Now*"), button("https://a")]
    )
    number = shared_box.requests()[0]["id"]
    page = shared_box.get(f"/messages/{number}").data.decode()
    assert ">Card</a>" in page
    assert "Nothing is reported about messages in rooms." in page
    framed = shared_box.get(f"/messages/{number}/html").data.decode()
    assert "<h1>Down</h1>" in framed
    assert '<a href="https://a">Open</a>' in framed
    assert 'channel=room"' in shared_box.get("/").data.decode()
