"""Template versions, template files, and the choice between them."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from domain.channels import Channel
from domain.content import Content, Recipient
from notifications.catalog import types
from notifications.catalog.types import MASK
from notifications.content import rendering, templates
from notifications.content import templates as content_templates
from notifications.content.engine import Template, TemplateError
from notifications.content.templates import (
    DEFAULT_LANGUAGE,
    Part,
    UnknownVersionError,
    Version,
    VersionConflictError,
    effective_texts,
    find_template,
    get_layout,
    language_of,
    layout_words,
)
from notifyproject.db.collections import collection
from providers.contract import Message
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, write_template
from tests.support.factories.templates import publish_version

pytestmark = pytest.mark.usefixtures("db")


PARTS = {DEFAULT_LANGUAGE: {"subject": "Paid: {{ amount }}", "body": "We have {{ amount }}."}}
DATA = {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}
SLUG = "payment_confirmed"


def create(parts: Mapping[str, Mapping[str, str]] = PARTS, *, slug: str = SLUG) -> Version:
    return templates.create_version(
        type_slug=slug, parts=parts, note="Shorter", created_by="maria", now=NOON
    )


def publish(number: int, *, slug: str = SLUG) -> None:
    publish_version(type_slug=slug, number=number, now=NOON)


def text(version: int, *, locale: str | None = None) -> tuple[str, str]:
    recipient = Recipient(locale=locale)
    return rendering.render_text(name=SLUG, version=version, data=DATA, recipient=recipient)


def message(channel: Channel, version: int, *, locale: str | None = None) -> Message:
    recipient = Recipient(locale=locale)
    subject, body = text(version, locale=locale)
    content = Content(subject=subject, body=body, template_id=SLUG, template_version=version)
    return rendering.render_message(
        channel=channel, content=content, data=DATA, recipient=recipient
    )


def test_version_is_stored_unchanged() -> None:
    version = create()
    assert version == Version(
        type=SLUG, number=1, parts=PARTS, note="Shorter", created_at=NOON, created_by="maria"
    )
    assert templates.get_version(type_slug=SLUG, number=1) == version


def test_versions_are_numbered_per_type() -> None:
    assert [create().number, create().number, create(slug="new_sale").number] == [1, 2, 1]


def test_concurrent_creators_get_different_numbers() -> None:
    parts = [{DEFAULT_LANGUAGE: {"subject": str(n), "body": "B"}} for n in range(24)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        made = list(pool.map(create, parts))
    assert sorted(version.number for version in made) == list(range(1, 25))
    stored = {v.number: v.parts for v in templates.list_versions(type_slug=SLUG, limit=100)}
    assert stored == {version.number: version.parts for version in made}


def test_creation_gives_up_after_repeated_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    create()
    monkeypatch.setattr(templates, "list_versions", lambda **_: [])
    with pytest.raises(VersionConflictError):
        create()


def test_list_is_newest_first_and_paged() -> None:
    for _ in range(5):
        create()
    create(slug="new_sale")
    create(slug="payment_confirmed_twice")
    assert [v.number for v in templates.list_versions(type_slug=SLUG, limit=2)] == [5, 4]
    rest = templates.list_versions(type_slug=SLUG, limit=10, below=4)
    assert [v.number for v in rest] == [3, 2, 1]
    assert templates.list_versions(type_slug="nope", limit=10) == []


def test_list_uses_an_index() -> None:
    for _ in range(3):
        create()
    create(slug="new_sale")
    query = collection("template_versions").find({"_id": {"$gte": f"{SLUG}:", "$lt": f"{SLUG};"}})
    plan = query.sort("_id", -1).explain()
    assert plan["executionStats"]["totalDocsExamined"] == 3
    assert "SORT" not in str(plan["queryPlanner"]["winningPlan"])


def test_publishing_changes_only_published_at() -> None:
    before = create()
    later = NOON + timedelta(hours=1)
    publish_version(type_slug=SLUG, number=1, now=later)
    after = templates.get_version(type_slug=SLUG, number=1)
    assert after == replace(before, published_at=later)


def test_older_versions_and_shipped_files_can_be_published_again() -> None:
    create()
    create()
    for number in (2, 1, 0, 2):
        publish(number)
        assert types.get_template_version(SLUG) == number


def test_unknown_version_cannot_be_published() -> None:
    with pytest.raises(UnknownVersionError):
        publish(1)
    with pytest.raises(UnknownVersionError):
        publish(0, slug="alert")
    assert types.get_template_version(SLUG) == 0


def test_last_publication_wins() -> None:
    for _ in range(8):
        create()
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(publish, range(1, 9)))
    assert types.get_template_version(SLUG) in range(1, 9)
    publish(3)
    assert types.get_template_version(SLUG) == 3


def test_shipped_files_are_version_0() -> None:
    shipped = templates.get_version(type_slug=SLUG, number=0)
    assert shipped is not None
    assert set(shipped.parts) == {DEFAULT_LANGUAGE, "pt"}
    assert shipped.parts[DEFAULT_LANGUAGE]["subject"] == "Payment confirmed: {{ video_title }}"
    assert templates.get_version(type_slug="alert", number=0) is None
    assert templates.get_version(type_slug="../..", number=0) is None


def test_version_wins_over_files_and_nearest_language_over_others() -> None:
    create(
        {
            DEFAULT_LANGUAGE: {"subject": "English", "body": "English"},
            "pt": {"subject": "Portugu\u00eas"},
            "pt-BR": {"body": "Brasileiro"},
        }
    )
    assert text(1) == ("English", "English")
    assert text(1, locale="pt-PT") == ("Portugu\u00eas", "Brasileiro")
    assert text(1, locale="pt-BR") == ("Portugu\u00eas", "Brasileiro")
    assert text(0, locale="pt-BR")[0] == "Pagamento confirmado: Sunrise"


def test_missing_part_comes_from_the_files() -> None:
    create({"pt": {"subject": "Pago"}})
    assert text(1, locale="pt")[0] == "Pago"
    assert text(1, locale="pt")[1] == text(0, locale="pt")[1]
    assert text(1) == text(0)
    assert message(Channel.PUSH, 1).text == message(Channel.PUSH, 0).text


def test_files_for_another_body_are_ignored() -> None:
    """The files have HTML and push texts, but the published version has only a new body."""
    create()
    assert "We have 49.90." in str(message(Channel.EMAIL, 1).html)
    assert "Your payment has arrived" not in str(message(Channel.EMAIL, 1).html)
    assert message(Channel.PUSH, 1).text == "We have 49.90."
    assert message(Channel.WHATSAPP, 1).text == "We have 49.90."


def test_version_can_change_one_channel() -> None:
    create({DEFAULT_LANGUAGE: {"push": "Paid {{ amount }}", "email_html": "<p>{{ amount }}!</p>"}})
    assert message(Channel.PUSH, 1).text == "Paid 49.90"
    assert ">49.90!</p>" in str(message(Channel.EMAIL, 1).html)
    assert message(Channel.WHATSAPP, 1).text == message(Channel.WHATSAPP, 0).text


def test_unknown_version_is_a_template_error() -> None:
    with pytest.raises(TemplateError) as error:
        text(7)
    assert error.value.code == "unknown_version"


def test_version_published_at_acceptance_is_sent() -> None:
    for word in ("Old", "New"):
        parts = {DEFAULT_LANGUAGE: {"subject": "{{ code }}", "body": word + " {{ code }}"}}
        create(parts, slug="mfa_code")
    masked = Content(
        subject=f"{MASK} is your login code",
        body=f"Old {MASK}",
        template_id="mfa_code",
        template_version=1,
        is_masked=True,
    )
    publish(2, slug="mfa_code")
    claimed = factories.claimed(type="mfa_code", content=masked, data={"code": "493817"})
    sent = rendering.render_message(
        channel=claimed.channel,
        content=claimed.content,
        data=claimed.data,
        recipient=claimed.recipient,
    )
    assert (sent.subject, sent.text) == ("493817", "Old 493817")


def test_version_is_read_once_per_process() -> None:
    create()
    assert text(1)[0] == "Paid: 49.90"
    collection("template_versions").delete_many({})
    assert text(1)[0] == "Paid: 49.90"
    assert text(1, locale="fr")[0] == "Paid: 49.90"


def test_oversized_html_is_left_out_of_the_email() -> None:
    """The limit of what the API takes applies to what is stored, too."""
    create({DEFAULT_LANGUAGE: PARTS[DEFAULT_LANGUAGE] | {"email_html": "<div>" * 13_000}})
    sent = message(Channel.EMAIL, 1)
    assert sent.html is not None
    assert "We have 49.90." in sent.html
    assert message(Channel.PUSH, 1).text == "We have 49.90."


def test_each_part_falls_back_separately(templates: Path) -> None:
    write_template(templates, "t", subject="S", body="B")
    write_template(templates, "t", language="pt", subject="Assunto", body="Corpo")
    (templates / "t" / "pt" / "body.txt").unlink()
    subject = find_template("t", 0, Part.SUBJECT, "pt-BR")
    body = find_template("t", 0, Part.BODY, "pt-BR")
    assert subject is not None
    assert body is not None
    assert (subject.render({}), body.render({})) == ("Assunto", "B")
    assert language_of("t", 0, "pt-BR") is None


def test_language_of_a_template_is_known(templates: Path) -> None:
    write_template(templates, "t")
    write_template(templates, "t", language="pt")
    assert language_of("t", 0, "pt-BR") == "pt"
    assert language_of("t", 0, "fr") is None
    assert language_of("nope", 0, "pt") is None


def test_effective_texts_are_the_texts_in_use(templates: Path) -> None:
    write_template(templates, "t", push="P", push_title="T", email_html="<p>H</p>")
    write_template(templates, "t", language="pt", body="Corpo")
    (templates / "t" / "pt" / "subject.txt").unlink()
    default = {"subject": "S", "body": "B", "push": "P", "push_title": "T"}
    assert effective_texts("t", 0) == {
        DEFAULT_LANGUAGE: default | {"email_html": "<p>H</p>"},
        "pt": {"body": "Corpo"},
    }
    assert effective_texts("nope", 0) == {}


def test_files_are_read_once(templates: Path) -> None:
    write_template(templates, "t", body="Before")
    assert find_template("t", 0, Part.BODY, None) is find_template("t", 0, Part.BODY, None)
    (templates / "t" / "body.txt").write_text("After")
    before = find_template("t", 0, Part.BODY, None)
    assert before is not None
    assert before.render({}) == "Before"
    content_templates.clear()
    after = find_template("t", 0, Part.BODY, None)
    assert after is not None
    assert after.render({}) == "After"


def test_syntax_error_in_a_file_is_reported_with_its_line(templates: Path) -> None:
    write_template(templates, "t", body="a\n{% nope %}")
    with pytest.raises(TemplateError) as error:
        find_template("t", 0, Part.BODY, None)
    assert (error.value.code, error.value.line) == ("template_failed", 2)


def test_missing_variable_is_reported_with_its_line() -> None:
    with pytest.raises(TemplateError) as error:
        Template("a\n\n{{ b }}").render({})
    assert (error.value.variable, error.value.line) == ("b", 3)


def test_missing_layout_is_an_error(templates: Path) -> None:
    (templates / "_layout" / "email.html").unlink()
    with pytest.raises(TemplateError, match="layout"):
        get_layout("pt")


def test_language_can_have_its_own_layout(templates: Path) -> None:
    (templates / "_layout" / "pt" / "email.html").write_text("<p>Pt</p>")
    assert "Pt" in get_layout("pt-BR").render({})
    assert layout_words("pt-BR")["open"] == "Abrir"
    assert layout_words("fi")["open"] == "Open"
    assert layout_words("pt").keys() == layout_words(None).keys()
