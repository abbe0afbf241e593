"""One notification, as each channel says it."""

from pathlib import Path
from typing import Any

import pytest

from domain.content import Attachment, Content, Recipient
from domain.states import Channel
from notifications.catalog.types import MASK
from notifications.content.engine import TemplateError
from notifications.content.rendering import (
    PUSH_BODY_LENGTH,
    PUSH_TITLE_LENGTH,
    check_channels,
    render_message,
)
from providers.contract import Message
from tests.support.factories.records import MORE_THAN_TEXT
from tests.support.factories.records import write_template as write

ADA = Recipient(email="ada@example.com", name="Ada")
SAID = Content(subject="Hello", body="First.\n\nSecond.", deep_link="https://example.com/1")
OTHERS = [channel for channel in Channel if channel is not Channel.EMAIL]


def message(channel: Channel, content: Content, recipient: Recipient = ADA, **data: Any) -> Message:
    return render_message(channel=channel, content=content, data=data, recipient=recipient)


def of(name: str, **fields: Any) -> Content:
    """Return content that was made by a template."""
    return Content(**({"subject": "S", "body": "B", "template_id": name} | fields))


# What each channel gets.


def test_only_mail_is_made_of_html() -> None:
    assert message(Channel.EMAIL, SAID).html is not None
    assert {message(channel, SAID).html for channel in OTHERS} == {None}


@pytest.mark.parametrize("channel", Channel)
def test_what_is_not_text_goes_along_on_every_channel(channel: Channel) -> None:
    said = message(channel, MORE_THAN_TEXT)
    assert said.image_url == "https://cdn.example.com/i.png"
    assert said.deep_link == "app://orders/1"
    assert said.payload == {"orderId": "1"}


def test_files_and_a_way_back_and_a_way_out_go_with_mail_only() -> None:
    url = "https://example.com/a.pdf"
    files = (Attachment(url=url, filename="a.pdf", content_type="application/pdf"),)
    content = Content(subject="s", body="b", reply_to="help@example.com", attachments=files)
    for channel in Channel:
        said = render_message(
            channel=channel,
            content=content,
            data={},
            recipient=ADA,
            unsubscribe_url="https://example.com/u",
        )
        found = (said.reply_to, said.attachments, said.unsubscribe_url)
        whole = ("help@example.com", files, "https://example.com/u")
        assert found == (whole if channel is Channel.EMAIL else (None, (), None))


def test_a_channel_without_words_of_its_own_says_subject_and_body() -> None:
    assert message(Channel.IN_APP, SAID).text == "First.\n\nSecond."
    assert message(Channel.WHATSAPP, SAID).text == "First.\n\nSecond."
    push = message(Channel.PUSH, SAID)
    assert (push.subject, push.text) == ("Hello", "First.\nSecond.")


def test_a_template_may_have_words_for_a_channel(templates: Path) -> None:
    write(
        templates, "t", push="Short {{ a }}", push_title="Title {{ a }}", whatsapp="*Bold* {{ a }}"
    )
    push = message(Channel.PUSH, of("t"), a=1)
    assert (push.subject, push.text) == ("Title 1", "Short 1")
    assert message(Channel.WHATSAPP, of("t"), a=1).text == "*Bold* 1"
    in_app = message(Channel.IN_APP, of("t"), a=1)
    assert (in_app.subject, in_app.text) == ("S", "B")


def test_a_push_is_cut_to_what_a_phone_shows() -> None:
    push = message(Channel.PUSH, Content(subject="long " * 60, body="word " * 300))
    assert push.subject is not None
    assert len(push.subject) <= PUSH_TITLE_LENGTH
    assert len(push.text) <= PUSH_BODY_LENGTH
    assert push.subject.endswith("long\u2026")
    assert push.text.endswith("word\u2026")


def test_a_push_of_a_template_is_cut_too(templates: Path) -> None:
    write(templates, "t", push="{{ a }}", push_title="{{ a }}")
    push = message(Channel.PUSH, of("t"), a="word " * 300)
    assert push.subject is not None
    assert (len(push.subject), len(push.text)) <= (PUSH_TITLE_LENGTH, PUSH_BODY_LENGTH)


def test_a_push_without_a_subject_has_no_title() -> None:
    assert message(Channel.PUSH, Content(body="b")).subject is None


def test_the_callers_subject_wins_over_the_templates_title(templates: Path) -> None:
    write(templates, "t", push_title="Short")
    assert message(Channel.PUSH, of("t", subject="The caller's")).subject == "The caller's"
    assert message(Channel.PUSH, of("t", subject="S")).subject == "Short"


def test_a_secret_is_in_what_is_sent_on_every_channel() -> None:
    masked = of("mfa_code", subject=f"{MASK} is your login code", body=MASK, is_masked=True)
    for channel in Channel:
        said = message(channel, masked, code="493817")
        assert "493817" in f"{said.subject}{said.text}"
        assert MASK not in f"{said.subject}{said.text}{said.html}"


# Languages.


def test_words_of_a_channel_are_in_the_persons_language(templates: Path) -> None:
    write(templates, "t", push="Short", whatsapp="Hello")
    write(templates, "t", language="pt", push="Curto", whatsapp="Ol\u00e1")
    for locale, push, whatsapp in (("pt-BR", "Curto", "Ol\u00e1"), ("fr", "Short", "Hello")):
        person = Recipient(locale=locale)
        assert message(Channel.PUSH, of("t"), person).text == push
        assert message(Channel.WHATSAPP, of("t"), person).text == whatsapp


def test_words_of_a_channel_in_another_language_than_the_body_are_not_taken(
    templates: Path,
) -> None:
    """Better the body's own words, cut, than half a message in a language nobody asked for."""
    write(templates, "t", push="Short", email_html="<h2>English</h2>", whatsapp="Hello")
    write(templates, "t", language="pt", body="Corpo")
    person, content = Recipient(locale="pt"), of("t", body="Corpo")
    assert message(Channel.PUSH, content, person).text == "Corpo"
    assert message(Channel.WHATSAPP, content, person).text == "Corpo"
    assert "English" not in str(message(Channel.EMAIL, content, person).html)


# What cannot be rendered.


def test_what_was_accepted_is_sent_when_the_template_has_changed_since(templates: Path) -> None:
    """A release may bring files that need a variable which nobody asked for before."""
    write(templates, "t", email_html="{{ new }}", push="{{ new }}", whatsapp="{{ new }}")
    for channel in Channel:
        said = message(channel, of("t", body="As accepted."))
        assert "As accepted." in said.text
    assert "As accepted." in str(message(Channel.EMAIL, of("t", body="As accepted.")).html)


def test_a_secret_that_cannot_be_filled_in_is_not_sent_as_a_mask() -> None:
    masked = of("mfa_code", subject=MASK, body=MASK, is_masked=True)
    for channel in Channel:
        with pytest.raises(TemplateError):
            message(channel, masked)


@pytest.mark.parametrize(
    ("channel", "part"),
    [
        (Channel.EMAIL, "email_html"),
        (Channel.PUSH, "push"),
        (Channel.PUSH, "push_title"),
        (Channel.WHATSAPP, "whatsapp"),
    ],
)
def test_a_variable_only_one_channel_needs_is_missed_before_anything_is_accepted(
    templates: Path, channel: Channel, part: str
) -> None:
    write(templates, "t", **{part: "{{ extra }}"})
    options: dict[str, Any] = {"name": "t", "version": 0, "recipient": ADA}
    with pytest.raises(TemplateError) as problem:
        check_channels([channel], data={}, **options)
    assert problem.value.variable == "extra"
    check_channels([channel], data={"extra": 1}, **options)
    check_channels([c for c in Channel if c is not channel], data={}, **options)
