"""Messages as Slack, Teams, and Discord get them, checked by the sandbox's own rules."""

import html
import json
import re
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.markdown import escape
from providers import slack_blocks
from providers.contract import Message, MessageLink
from providers.discord import embeds
from providers.teams import cards
from sandbox.providers.rooms import slack_blocks as slack_rules
from sandbox.providers.rooms.cards import Card
from sandbox.providers.rooms.discord import Discord, _form_errors
from sandbox.providers.rooms.slack import slack_card
from sandbox.providers.rooms.teams import Teams
from tests.support.tables import each_case

LINKS = (MessageLink(label="Open", url="https://shop.example/orders/1?a=1&b=2"),)
TEXT = st.text(
    alphabet=st.sampled_from("ab *_`[]()<>!#-+1.\\\n~|&@:/") | st.characters(codec="utf-8"),
    max_size=200,
)
LONG = st.integers(1, 40_000).map(lambda size: ("word *and* <!here> & " * 2_000)[:size])
TITLE = st.text(max_size=400).map(lambda text: text.replace("\n", " "))


def message(text: str, *, title: str | None = "Down", links: Any = LINKS) -> Message:
    return Message(subject=title, text=text, links=links)


def shown_by_teams(body: Mapping[str, Any]) -> Card:
    return Teams.card(Teams, body)


def shown_by_discord(body: Mapping[str, Any]) -> Card:
    return Discord.card(Discord, body)


def letters(text: str) -> str:
    return re.sub(r"[\s\u200b\u2022]", "", text).replace("\u02cb", "`")


def problems_in_slack(body: Mapping[str, Any]) -> list[str]:
    blocks = body["blocks"]
    is_long = slack_rules.text_length(blocks) > slack_rules.MAX_ALL_BLOCKS
    return [*slack_rules.violations(blocks), *(["too long"] if is_long else [])]


class Posted:
    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body


MARKED = (
    "**Disk** of `db_1` is *full*, see [the runbook](https://wiki.example/a_(b)?x=1&y=2).\n"
    "\n- first\n  - second\n1. third\n\n```\n$ df -h <all>\n```\n<!here>"
)


def test_slack_gets_mrkdwn() -> None:
    body = slack_blocks.build(message(MARKED))
    header, section, actions = body["blocks"]
    assert header["text"] == {"type": "plain_text", "text": "Down", "emoji": False}
    assert section["text"]["text"].split("\n") == [
        "*Disk* of `db_1` is _full_, see <https://wiki.example/a_(b)?x=1&amp;y=2|the runbook>.",
        "",
        "\u2022 first",
        "    \u2022 second",
        "1. third",
        "",
        "```$ df -h &lt;all&gt;```",
        "<!here>",
    ]
    assert actions["elements"][0]["url"] == LINKS[0].url
    assert body["text"] == "Down"


def test_teams_gets_text_blocks() -> None:
    body = cards.build(message(MARKED))
    content = body["attachments"][0]["content"]
    assert [block["text"] for block in content["body"]] == [
        "Down",
        "**Disk** of db\\_1 is _full_, see [the runbook](https://wiki.example/a_%28b%29?x=1&y=2).",
        "- first\r    - second\r1. third",
        "$ df -h \\<all\\>",
        "@here",
    ]
    assert content["body"][3]["fontType"] == "Monospace"
    assert content["actions"] == [{"type": "Action.OpenUrl", "title": "Open", "url": LINKS[0].url}]


def test_discord_gets_one_embed_that_mentions_nobody() -> None:
    body = embeds.build(message(MARKED))
    (embed,) = body["embeds"]
    assert body["allowed_mentions"] == {"parse": []}
    assert (embed["title"], embed["url"]) == ("Down", LINKS[0].url)
    assert embed["description"].split("\n") == [
        "**Disk** of `db_1` is *full*, see [the runbook](https://wiki.example/a_%28b%29?x=1&y=2).",
        "",
        "- first",
        "  - second",
        "1. third",
        "",
        "```",
        "$ df -h <all>",
        "```",
        "@here",
        "",
        "[Open](https://shop.example/orders/1?a=1&b=2)",
    ]


@given(TEXT, TITLE)
def test_plain_text_arrives_as_it_is(text: str, title: str) -> None:
    """Nothing that a value contains is markup, a link with another label, or a mention."""
    sent = message(escape(text), title=title or None, links=())
    for body, card in (
        (slack_blocks.build(sent), slack_card(slack_blocks.build(sent))),
        (cards.build(sent), shown_by_teams(cards.build(sent))),
        (embeds.build(sent), shown_by_discord(embeds.build(sent))),
    ):
        assert letters(card.text) == letters(text), body
        body_html = card.html.partition("</h1>")[2] or card.html.partition('"card">')[2]
        shown = html.unescape(re.sub(r'<a href="[^"]*">|</a>|</?p>|</?div>', "", body_html))
        assert letters(shown) == letters(text)


@given(TEXT | LONG, TITLE | st.just("t" * 900))
def test_any_message_keeps_the_limits(text: str, title: str) -> None:
    for source in (text, escape(text), f"```\n{text}\n```", f"**{escape(text)}**", f"- {text}"):
        sent = message(source, title=title or "t")
        assert problems_in_slack(slack_blocks.build(sent)) == []
        assert Teams.flaw(Teams, Posted(cards.build(sent))) is None
        body = embeds.build(sent)
        assert dict(_form_errors(body)) == {}
        assert body["embeds"][0]


@each_case(
    "text, expected",
    [
        ("*a* & <b>", "*\u200ba\u200b* &amp; &lt;b&gt;"),
        ("_init_ snake_case", "_\u200binit\u200b_ snake_case"),
        ("__0__", "_\u200b\u200b_\u200b0\u200b_\u200b_"),
        ("<!channel> <@U1>", "&lt;!channel&gt; &lt;@U1&gt;"),
        ("2 * 3", "2 * 3"),
        ("`rm` it's", "\u02cbrm\u02cb it's"),
    ],
)
def test_slack_reads_no_marker_in_a_value(text: str, expected: str) -> None:
    blocks = slack_blocks.build(message(escape(text), title=None, links=()))["blocks"]
    assert blocks[0]["text"]["text"] == expected


def test_message_without_title_or_text_is_still_one() -> None:
    only_text = message("Hello", title=None, links=())
    assert slack_blocks.build(only_text)["text"] == "Hello"
    only_title = message("", links=())
    assert [block["type"] for block in slack_blocks.build(only_title)["blocks"]] == ["header"]
    assert cards.build(only_title)["attachments"][0]["content"]["body"][0]["text"] == "Down"
    assert embeds.build(only_title)["embeds"] == [{"title": "Down"}]


def test_long_message_ends_with_an_ellipsis() -> None:
    sent = message("word " * 10_000)
    assert json.dumps(slack_blocks.build(sent), ensure_ascii=False).count("\u2026") == 1
    assert cards.build(sent)["attachments"][0]["content"]["body"][-1]["text"].endswith("\u2026")
    assert "\u2026" in embeds.build(sent)["embeds"][0]["description"]


def test_too_many_links_are_left_out() -> None:
    links = [MessageLink(label="x" * 200, url=f"https://x.example/{n}") for n in range(40)]
    sent = message("Hello", links=tuple(links))
    assert problems_in_slack(slack_blocks.build(sent)) == []
    assert Teams.flaw(Teams, Posted(cards.build(sent))) is None
    assert dict(_form_errors(embeds.build(sent))) == {}


def test_links_of_discord_leave_room_for_the_text() -> None:
    links = [MessageLink(label="Open", url=f"https://x.example/{n}{'a' * 900}") for n in range(10)]
    body = embeds.build(message("word " * 1_000, links=tuple(links)))
    assert dict(_form_errors(body)) == {}
    description = body["embeds"][0]["description"]
    assert description.count("](https://x.example/") == 2
    assert description.count("word ") > 300


def test_card_of_many_lines_takes_linear_time() -> None:
    # In quadratic time, it takes minutes.
    body = cards.build(message("```\n" + "line\n" * 60_000 + "```"))
    assert Teams.flaw(Teams, Posted(body)) is None
    blocks = body["attachments"][0]["content"]["body"]
    assert (blocks[-2]["text"], blocks[-1]["text"]) == ("line", "\u2026")
    assert len(json.dumps(body, separators=(",", ":"))) > cards.MAX_CHARACTERS - 150
