"""Brands, layouts, and partials in the console: seen, changed, restored, and removed."""

import json
import re
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.http import HttpResponse
from django.test import Client

from domain.time import utc_now
from notifications.catalog import designs, types
from notifications.catalog.designs import Design, Kind
from notifications.content import design_changes, templates
from notifications.content.design_changes import Change
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories import notifications as factories
from tests.support.factories.templates import publish_version
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/design/"
LAYOUT = "<html><head></head><body>{{ content }}\n<p>{{ unsubscribe_url }}</p></body></html>"
COLOURS = ("background", "surface", "text", "muted", "accent", "on_accent")


@pytest.fixture
def viewer() -> Client:
    return signed_in(make_staff("rui", "notifications.view_design"))


@pytest.fixture
def editor() -> Client:
    return signed_in(make_staff("eva", "notifications.view_design", "notifications.change_design"))


def store(kind: Kind, name: str, content: Any, *, by: str = "app:shop") -> Design:
    present = designs.read_newest().items(kind).get(name)
    replaces = None if present is None else designs.revision_of(present)
    change = Change(kind=kind, name=name, content=content, replaces=replaces, pointer="")
    return design_changes.store([change], created_by=by, now=utc_now()).design


def texts(words: str, language: str = "default") -> dict[str, dict[str, str]]:
    return {language: {"text": words, "html": f"<p>{words}</p>"}}


def brand(name: str = "Acme", **fields: str) -> dict[str, str]:
    """Return what the form of a brand posts."""
    colours = {
        f"brand/colours/{scheme}/{colour}": getattr(palette, colour)
        for scheme, palette in (("light", designs.Palette()), ("dark", designs.DarkPalette()))
        for colour in COLOURS
    }
    own = {f"brand/{key}": value for key, value in fields.items()}
    return {"brand/name": name, "brand/logo/width": "120", **colours, **own}


def item(kind: str, name: str, part: str = "") -> str:
    return f"{LIST}item/{kind}/{name}/{part}"


def save(client: Client, url: str, fields: dict[str, Any], *, base: int) -> HttpResponse:
    return client.post(url, {"base": base, **fields})


def newest() -> Design:
    return designs.read_newest()


def shown(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_brand_is_created_changed_and_recorded(editor: Client) -> None:
    answer = save(editor, f"{LIST}new/brand/", {"name": "acme", **brand()}, base=0)
    assert (answer.status_code, answer["Location"]) == (302, item("brand", "acme"))
    assert newest().brand("acme") == designs.BrandRequest(name="Acme")
    changed = brand(
        footer="1 High Street\r\nLisbon",
        **{"logo/url": "https://cdn.example.com/a.png", "colours/light/accent": " #B91C1C"},
    )
    assert save(editor, item("brand", "acme"), changed, base=1).status_code == 302
    stored = newest().brand("acme")
    assert stored.footer == "1 High Street\nLisbon"
    assert stored.logo == designs.Logo(url="https://cdn.example.com/a.png")
    assert stored.colours.light.accent == "#b91c1c"
    document = collection("designs").find_one({"_id": 2})
    assert document is not None
    assert document["created_by"] == "staff:eva"
    entries = LogEntry.objects.filter(object_id="brand/acme").order_by("id")
    assert [(e.action_flag, e.change_message) for e in entries] == [
        (ADDITION, "Created, in design 1."),
        (CHANGE, "Changed, in design 2."),
    ]


def test_save_without_a_change_makes_no_design(editor: Client) -> None:
    store(Kind.LAYOUT, "plain", f"{LAYOUT}\n")
    assert save(editor, item("layout", "plain"), {"html": LAYOUT}, base=1).status_code == 302
    assert newest().number == 1
    assert LogEntry.objects.count() == 0


def test_list_shows_what_there_is_who_changed_it_and_what_uses_it(editor: Client) -> None:
    assert "No brands yet." in shown(editor, LIST)
    store(Kind.PARTIAL, "help", texts("Bye"))
    store(Kind.LAYOUT, "plain", LAYOUT.replace("<p>", "{% render 'help' %}<p>"))
    store(
        Kind.BRAND,
        "acme",
        {
            "name": "Acme Ltd",
            "layout": "plain",
            "logo": None,
            "footer": "",
            "colours": {"light": {}, "dark": {}},
        },
    )
    types.define_type("alert", {"brand": "acme"}, now=utc_now())
    text = words(shown(editor, LIST))
    assert "Acme Ltd acme · 1 type" in text
    assert "help plain layout" in text
    assert "plain acme brand" in text
    assert "shop (client)" in text


def test_page_of_an_item_shows_its_versions_and_users(viewer: Client) -> None:
    store(Kind.PARTIAL, "help", texts("Bye"))
    store(Kind.PARTIAL, "help", texts("Ciao"), by="staff:eva")
    page = shown(viewer, item("partial", "help"))
    assert "Ciao" in page
    assert "Nothing yet" in page
    text = words(page)
    assert "Design 2 Changed" in text
    assert "Design 1 Created" in text
    assert "Save" not in [button.strip() for button in re.findall(r"<button[^>]*>([^<]*)", page)]


def test_viewer_sees_all_and_changes_nothing(viewer: Client) -> None:
    store(Kind.LAYOUT, "plain", LAYOUT)
    for url in (LIST, f"{LIST}changes/", f"{LIST}1/change/", item("layout", "plain")):
        assert viewer.get(url).status_code == 200
    assert viewer.get(f"{LIST}new/layout/").status_code == 403
    for url in (
        f"{LIST}new/layout/",
        item("layout", "plain"),
        item("layout", "plain", "remove/"),
        item("layout", "plain", "restore/"),
        item("layout", "plain", "preview/"),
    ):
        assert viewer.post(url, {"number": 1, "html": "x", "base": 1}).status_code == 403
    assert newest().number == 1


@each_case(
    "fields, name, text",
    [
        (brand(""), "brand/name", "Enter 1 to 120 characters."),
        (brand(**{"logo/url": "http://cdn.example.com/a.png"}), "brand/logo/url", "https"),
        (brand(**{"logo/url": "https://e.com/a.svg"}), "brand/logo/url", "PNG, JPEG, or GIF"),
        (brand(**{"logo/dark_url": "https://e.com/a.png"}), "brand/logo/url", "Enter 1 to"),
        (
            brand(**{"logo/url": "https://e.com/a.png", "logo/width": "9"}),
            "brand/logo/width",
            "Enter a number from 16 to 480.",
        ),
        (brand(**{"colours/dark/accent": "red"}), "brand/colours/dark/accent", "Enter # and six"),
        (brand(layout="gone"), "brand/layout", "Unknown layout."),
    ],
)
def test_problem_of_a_brand_is_at_its_field(
    editor: Client, fields: dict[str, str], name: str, text: str
) -> None:
    page = save(editor, f"{LIST}new/brand/", {"name": "acme", **fields}, base=0)
    assert page.status_code == 200
    found = page.context["form"].errors
    assert found.keys() == {name}
    assert text in " ".join(found[name])
    assert "Nothing that you typed is lost" in page.content.decode()


def test_every_wrong_field_of_a_brand_is_named_at_once(editor: Client) -> None:
    wrong = brand("", **{"colours/light/text": "x", "colours/dark/muted": ""})
    found = save(editor, f"{LIST}new/brand/", {"name": "acme", **wrong}, base=0)
    assert found.context["form"].errors.keys() == {"brand/name", "brand/colours/light/text"}
    wrong = brand(**{"logo/url": "http://e.com/a.png", "layout": "gone"})
    found = save(editor, f"{LIST}new/brand/", {"name": "acme", **wrong}, base=0)
    assert found.context["form"].errors.keys() == {"brand/logo/url", "brand/layout"}
    found = save(editor, f"{LIST}new/brand/", {"name": "Not a name", **brand()}, base=0)
    assert found.context["form"].errors.keys() == {"name"}


@each_case(
    "html, text",
    [
        ("<html>{{ content }}</html>", "A layout has {{ unsubscribe_url }}."),
        (f"{LAYOUT}\n{{{{ a", "Line 3"),
        ("", "Must not be blank."),
    ],
)
def test_problem_of_a_layout_is_at_its_field(editor: Client, html: str, text: str) -> None:
    page = save(editor, f"{LIST}new/layout/", {"name": "plain", "html": html}, base=0)
    assert text in " ".join(page.context["form"].errors["html"])


def test_partial_gets_a_language_and_loses_one(editor: Client) -> None:
    fields = {
        "language": ["default"],
        "texts/default/text": "Help: {{ url }}",
        "texts/default/html": "<p>\r\n{{ url }}</p>",
        "new_language": "pt",
        "texts//text": "Ajuda",
    }
    save(editor, f"{LIST}new/partial/", {"name": "help", **fields}, base=0)
    assert newest().partials["help"] == {
        "default": {"text": "Help: {{ url }}", "html": "<p>\n{{ url }}</p>"},
        "pt": {"text": "Ajuda"},
    }
    fields = {"language": ["default", "pt"], "texts/default/text": "Help", "texts/pt/text": " "}
    save(editor, item("partial", "help"), fields, base=1)
    assert newest().partials["help"] == {"default": {"text": "Help"}}
    wrong = {"language": ["default"], "texts//text": "Ajuda", "texts/default/text": "Help"}
    page = save(editor, item("partial", "help"), wrong, base=2)
    assert "Enter the code of the new language" in page.content.decode()
    assert "Ajuda" in page.content.decode()
    page = save(editor, item("partial", "help"), {**wrong, "new_language": "Portuguese"}, base=2)
    assert "Expected default, or a language such as pt or pt-BR." in page.content.decode()
    assert newest().number == 2


def test_edit_since_the_page_was_opened_is_shown_and_loses_nothing(editor: Client) -> None:
    fields = brand(footer="Old", **{"colours/light/text": "#111111"})
    save(editor, f"{LIST}new/brand/", {"name": "acme", **fields}, base=0)
    theirs = {**fields, "brand/footer": "Theirs", "brand/name": "Acme Ltd"}
    assert save(editor, item("brand", "acme"), theirs, base=1).status_code == 302
    ours = {**fields, "brand/footer": "Ours", "brand/colours/light/text": "#222222"}
    page = save(editor, item("brand", "acme"), ours, base=1)
    assert page.status_code == 200
    assert newest().number == 2
    form = page.context["form"]
    assert form.values["brand/name"] == "Acme Ltd", "only they changed it"
    assert form.values["brand/colours/light/text"] == "#222222", "only we changed it"
    assert form.values["brand/footer"] == "Ours", "nothing that was typed is lost"
    assert form.theirs == {"brand/footer": "Theirs"}
    text = words(page.content.decode())
    assert "eva has changed it since you opened it." in text
    assert "Changed by eva" in text
    assert text.count("Old") >= 2
    again = {**form.values, "base": str(form.base.number)}
    assert editor.post(item("brand", "acme"), again).status_code == 302
    stored = newest().brand("acme")
    assert (stored.name, stored.footer, stored.colours.light.text) == (
        "Acme Ltd",
        "Ours",
        "#222222",
    )


def test_item_that_was_removed_meanwhile_can_be_stored_again(editor: Client) -> None:
    store(Kind.LAYOUT, "plain", LAYOUT)
    store(Kind.LAYOUT, "plain", None)
    ours = LAYOUT.replace("<p>", "<p>Ours ")
    page = save(editor, item("layout", "plain"), {"html": ours}, base=1)
    assert "somebody else has removed it" in page.content.decode()
    assert page.context["form"].values == {"html": ours}
    base = page.context["form"].base.number
    assert save(editor, item("layout", "plain"), {"html": ours}, base=base).status_code == 302
    assert newest().layouts == {"plain": ours}


@each_case("base", ["9" * 30, "9" * 5_000, "-1", "\u0663", "", "a"])
def test_form_of_an_unknown_design_is_shown_again(editor: Client, base: str) -> None:
    response = editor.post(item("layout", "main"), {"base": base, "html": ""})
    assert response.status_code == 200


def test_routing_by_the_brand_of_a_login_code_needs_the_permission_to_weaken_it(
    editor: Client,
) -> None:
    store(Kind.BRAND, "acme", {"name": "Acme"})
    collection("notification_types").update_one({"_id": "mfa_code"}, {"$set": {"brand": "acme"}})
    fields = brand(reply_to="eve@evil.example")
    response = save(editor, item("brand", "acme"), fields, base=1)
    assert "A critical or sensitive type has this brand." in words(response.content.decode())
    assert newest().number == 1
    assert save(editor, item("brand", "acme"), brand(footer="Lisbon"), base=1).status_code == 302
    admin = signed_in(
        make_staff("ada", "notifications.change_design", "notifications.weaken_notificationtype")
    )
    assert save(admin, item("brand", "acme"), fields, base=2).status_code == 302
    assert newest().number == 3
    revision = designs.revision_of(newest().brands["acme"])
    post = {"number": 1, "revision": revision}
    response = editor.post(item("brand", "acme", "restore/"), post, follow=True)
    assert "Not restored. A critical or sensitive type" in words(response.content.decode())
    assert newest().number == 3


def test_name_of_another_item_is_refused(editor: Client) -> None:
    store(Kind.LAYOUT, "plain", LAYOUT)
    other = {"name": "plain", "html": LAYOUT.replace("<p>", "<p>Other ")}
    page = save(editor, f"{LIST}new/layout/", other, base=1)
    assert page.context["form"].errors == {"name": ["There is a layout with this name."]}
    assert newest().number == 1


def test_change_that_a_published_template_cannot_use_is_refused(editor: Client) -> None:
    store(Kind.PARTIAL, "help", texts("Bye"))
    _publish("alert", "{% render 'help' %}")
    fields = {"language": ["default"], "texts/default/text": "{{ order.id }}"}
    page = save(editor, item("partial", "help"), fields, base=1)
    assert "The type alert can&#x27;t use it" in page.content.decode()
    assert newest().number == 1


def _publish(slug: str, body: str) -> None:
    parts = {"default": {"subject": "S", "body": body}}
    templates.create_version(type_slug=slug, parts=parts, note="", created_by="", now=utc_now())
    publish_version(type_slug=slug, number=1, now=utc_now())


def test_unused_item_is_removed_after_a_question(editor: Client) -> None:
    store(Kind.LAYOUT, "plain", LAYOUT)
    revision = designs.revision_of(LAYOUT)
    url = item("layout", "plain", "remove/")
    asked = editor.post(url, {"revision": revision})
    assert "Remove the layout plain?" in asked.content.decode()
    assert newest().number == 1
    assert editor.post(url, {"revision": revision, "confirmed": "yes"})["Location"] == LIST
    assert newest().layouts == {}
    (entry,) = LogEntry.objects.all()
    assert (entry.action_flag, entry.change_message) == (DELETION, "Removed, in design 2.")


def test_used_item_is_not_removed(editor: Client) -> None:
    store(Kind.LAYOUT, "plain", LAYOUT)
    types.define_type("alert", {"layout": "plain"}, now=utc_now())
    page = shown(editor, item("layout", "plain"))
    assert "It can be removed once nothing uses it." in page
    url = item("layout", "plain", "remove/")
    for fields in ({}, {"confirmed": "yes"}):
        answer = editor.post(url, {"revision": designs.revision_of(LAYOUT), **fields}, follow=True)
        assert "Not removed. Used by the type alert." in answer.content.decode()
    assert newest().number == 1


def test_removal_of_what_has_changed_is_refused(editor: Client) -> None:
    store(Kind.LAYOUT, "plain", LAYOUT)
    stale = designs.revision_of("older")
    fields = {"revision": stale, "confirmed": "yes"}
    answer = editor.post(item("layout", "plain", "remove/"), fields, follow=True)
    assert "Somebody else changed it at the same time" in answer.content.decode()
    assert newest().number == 1


def test_earlier_version_is_viewed_and_restored_as_a_new_one(editor: Client) -> None:
    store(Kind.LAYOUT, "plain", LAYOUT)
    changed = LAYOUT.replace("<p>", "<p>Newer ")
    store(Kind.LAYOUT, "plain", changed)
    page = shown(editor, f"{item('layout', 'plain')}?number=1")
    assert "As it was in design 1." in page
    assert "Restoring it would change" in page
    fields = {"number": 1, "revision": designs.revision_of(changed)}
    answer = editor.post(item("layout", "plain", "restore/"), fields, follow=True)
    assert "Restored, in design 3." in answer.content.decode()
    assert newest().layouts == {"plain": LAYOUT}
    (entry,) = LogEntry.objects.all()
    assert entry.change_message == "Restored from design 1, in design 3."
    stale = editor.post(item("layout", "plain", "restore/"), {**fields, "number": 2}, follow=True)
    assert "Somebody else changed it" in stale.content.decode()
    assert newest().number == 3


def test_removed_item_is_restored_from_the_list_of_changes(editor: Client) -> None:
    store(Kind.BRAND, "acme", None)
    store(Kind.LAYOUT, "plain", LAYOUT)
    store(Kind.LAYOUT, "plain", None)
    page = shown(editor, f"{LIST}changes/")
    assert f'href="{item("layout", "plain")}?number=1"' in page
    before = shown(editor, f"{item('layout', 'plain')}?number=1")
    assert "It has been removed since." in before
    fields = {"number": 1, "revision": ""}
    assert editor.post(item("layout", "plain", "restore/"), fields).status_code == 302
    assert newest().layouts == {"plain": LAYOUT}


def test_changes_are_listed_by_page_and_each_has_a_difference(viewer: Client) -> None:
    for number in range(33):
        store(Kind.PARTIAL, "help", texts(f"Text {number}"))
    first = viewer.get(f"{LIST}changes/")
    assert [row["edition"].number for row in first.context["rows"]] == [*range(33, 3, -1)]
    rest = viewer.get(f"{LIST}changes/{first.context['older']}")
    assert [row["edition"].number for row in rest.context["rows"]] == [3, 2, 1]
    assert rest.context["older"] is None
    text = words(shown(viewer, f"{LIST}33/change/"))
    assert "Text 31 Text 32" in text
    assert viewer.get(f"{LIST}99/change/").status_code == 302
    assert viewer.get(f"{LIST}x/change/").status_code == 302


@each_case("url", ["item/brand/nobody/", "item/brand/nobody/?number=7", "item/brand/a/?number=x"])
def test_unknown_item_leads_to_the_list(viewer: Client, url: str) -> None:
    answer = viewer.get(f"{LIST}{url}")
    assert (answer.status_code, answer["Location"]) == (302, LIST)


def test_unknown_kind_is_not_found(viewer: Client) -> None:
    assert viewer.get(f"{LIST}item/colour/acme/").status_code == 404
    assert viewer.get(f"{LIST}item/brand/nobody/preview/").status_code == 404


def preview(client: Client, url: str, fields: Any = None, **query: str) -> dict[str, Any]:
    full = f"{url}?{'&'.join(f'{key}={value}' for key, value in query.items())}"
    answer = client.get(full) if fields is None else client.post(full, fields)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = json.loads(answer.content)
    return found


def test_preview_of_an_unsaved_brand_is_what_would_be_sent(editor: Client) -> None:
    fields = {"name": "acme", **brand(footer="1 High Street", **{"colours/light/text": "#123456"})}
    url = f"{LIST}new/brand/preview/"
    found = preview(editor, url, fields, type="order_shipped", language="pt")
    assert found["errors"] == {}
    assert "#123456" in found["html"]["light"]
    assert "1 High Street" in found["html"]["light"]
    assert "Enviado por Acme" in found["html"]["light"] or "Acme" in found["html"]["light"]
    assert ["pt", "Portuguese", True] in found["languages"]
    assert "prefers-color-scheme" not in found["html"]["light"] + found["html"]["dark"]
    assert found["html"]["light"] != found["html"]["dark"]
    assert "Text on the card" in found["contrast"]
    assert newest().number == 0


def test_preview_of_a_brand_names_problems_and_contrast(editor: Client) -> None:
    low = brand(**{"colours/light/text": "#eeeeee", "colours/dark/text": "blue"})
    found = preview(editor, f"{LIST}new/brand/preview/", low, type="order_shipped")
    assert found["errors"].keys() == {"brand/colours/dark/text"}
    assert found["labels"]["brand/colours/dark/text"] == "Colours dark: text"
    assert "html" not in found
    assert "Low" in found["contrast"]


def test_preview_of_a_layout_has_the_chosen_brand(editor: Client) -> None:
    save(editor, f"{LIST}new/brand/", {"name": "acme", **brand("Acme Ltd")}, base=0)
    fields = {"name": "plain", "html": LAYOUT.replace("<p>", "<p>From {{ brand.name }} ")}
    url = f"{LIST}new/layout/preview/"
    found = preview(editor, url, fields, type="order_shipped", brand="acme")
    assert "From Acme Ltd" in found["html"]["light"]
    none = preview(editor, url, fields, type="order_shipped", brand="-")
    assert "Acme Ltd" not in none["html"]["light"]
    unknown = preview(editor, url, fields, type="order_shipped", brand="gone")
    assert unknown["problem"] == "Unknown brand."
    assert preview(editor, url, fields, type="gone")["problem"] == "Choose a type."


def test_preview_of_a_partial_is_within_its_type_or_by_itself(editor: Client) -> None:
    store(Kind.PARTIAL, "help", texts("Bye"))
    _publish("alert", "Before {% render 'help' %} after")
    fields = {"language": ["default"], "texts/default/text": "Ciao {{ url }}{{ title }}"}
    url = item("partial", "help", "preview/")
    refused = preview(editor, url, fields, type="alert")
    assert "The type alert can't use it" in refused["errors"][""][0]
    fields["texts/default/text"] = "Ciao"
    within = preview(editor, url, fields, type="alert")
    assert within["text"].startswith("Before Ciao after")
    assert within["note"] == ""
    alone = {"name": "new", "texts/default/html": "<b>{{ order }} by {{ courier_name }}</b>"}
    found = preview(editor, f"{LIST}new/partial/preview/", alone, type="order_shipped")
    assert "doesn't render it" in found["note"]
    assert " by courier_name</b>" in found["html"]["light"]


def test_preview_of_a_stored_item_needs_no_right_to_change_it(viewer: Client) -> None:
    store(Kind.LAYOUT, "plain", LAYOUT.replace("<p>", "<p>Older "))
    store(Kind.LAYOUT, "plain", LAYOUT.replace("<p>", "<p>Newer "))
    url = item("layout", "plain", "preview/")
    assert "Newer" in preview(viewer, url, type="alert")["html"]["light"]
    assert "Older" in preview(viewer, url, type="alert", number="1")["html"]["light"]
    assert viewer.get(f"{url}?number=9&type=alert").status_code == 404


def test_frame_of_the_preview_runs_nothing(viewer: Client) -> None:
    answer = viewer.get(f"{LIST}frame/")
    policy = answer["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-same-origin; default-src 'none'; ")
    assert "script" not in policy


def test_message_and_type_link_their_brand_and_layout(console: Client) -> None:
    store(Kind.LAYOUT, "plain", LAYOUT)
    save(console, f"{LIST}new/brand/", {"name": "acme", **brand()}, base=1)
    document = factories.accepted(created_at=utc_now())
    look = {"design": 2, "brand": "acme", "layout": "plain"}
    collection("notifications").update_one(
        {"_id": document["_id"]}, {"$set": {"content.look": look}}
    )
    types.define_type("payment_confirmed", {"brand": "acme"}, now=utc_now())
    message = f"/admin/notifications/notification/{document['_id']}/change/"
    kind = "/admin/notifications/notificationtype/payment_5Fconfirmed/change/"
    page = shown(console, message)
    assert f'href="{item("brand", "acme")}?number=2"' in page
    assert f'href="{item("layout", "plain")}?number=2"' in page
    assert f'href="{item("brand", "acme")}"' in shown(console, kind)
    few = signed_in(
        make_staff("rui", "notifications.view_notification", "notifications.view_notificationtype")
    )
    assert item("brand", "acme") not in shown(few, message) + shown(few, kind)


def test_brand_keeps_its_sender_and_accounts(editor: Client) -> None:
    fields = brand(**{"from": "Acme <no-reply@other.example>", "accounts/email": "gone, gone"})
    page = save(editor, f"{LIST}new/brand/", {"name": "acme", **fields}, base=0)
    assert page.context["form"].errors.keys() == {"brand/from", "brand/accounts/email"}
    fields = brand(**{"accounts/email": "x" * 50})
    page = save(editor, f"{LIST}new/brand/", {"name": "acme", **fields}, base=0)
    assert page.context["form"].errors.keys() == {"brand/accounts/email"}
    fields = brand(reply_to="help@acme.example")
    save(editor, f"{LIST}new/brand/", {"name": "acme", **fields}, base=0)
    assert newest().brand("acme").reply_to == "help@acme.example"


def translations(**texts: str) -> dict[str, str]:
    return {"texts": json.dumps({"order": texts}, indent=2)}


def test_translations_are_made_changed_restored_and_removed(editor: Client) -> None:
    new = {"name": "default", **translations(title="Order {number}")}
    answer = save(editor, f"{LIST}new/translation/", new, base=0)
    assert (answer.status_code, answer["Location"]) == (302, item("translation", "default"))
    new = {"name": "pt-BR", **translations(title="Pedido {number}")}
    assert save(editor, f"{LIST}new/translation/", new, base=1).status_code == 302
    assert newest().translations == {
        "default": {"order": {"title": "Order {number}"}},
        "pt-BR": {"order": {"title": "Pedido {number}"}},
    }
    url = item("translation", "pt-BR")
    assert "Pedido {number}" in shown(editor, url)
    save(editor, url, translations(title="Pedido n. {number}"), base=2)
    assert "Pedido n. {number}" in words(shown(editor, f"{LIST}3/change/"))
    revision = designs.revision_of(newest().translations["pt-BR"])
    editor.post(f"{url}restore/", {"number": 2, "revision": revision})
    assert newest().translations["pt-BR"] == {"order": {"title": "Pedido {number}"}}
    revision = designs.revision_of(newest().translations["pt-BR"])
    asked = words(editor.post(f"{url}remove/", {"revision": revision}).content.decode())
    assert "Remove the translation pt-BR?" in asked
    assert "Its recipients get the texts of the wider language" in asked
    editor.post(f"{url}remove/", {"revision": revision, "confirmed": "yes"})
    assert newest().translations.keys() == {"default"}
    assert "Removed" in words(shown(editor, f"{LIST}changes/"))


@each_case(
    "name, texts, place, text",
    [
        ("english", "{}", "name", "Expected default, or a language such as pt or pt-BR."),
        ("pt", '{"a": "b",\n}', "texts", "Line 2, column 1: this is no JSON."),
        ("pt", "", "texts", "Line 1, column 1: this is no JSON."),
        ("pt", "[]", "texts", "Expected a text, or texts by name."),
        ("pt", '{"a": "b", "a": "c"}', "texts", "'a' is named twice."),
        ("pt", '{"a": {"b": 5}}', "texts", "a.b: Expected a text, or texts by name."),
        ("pt", '{"a": {"b": "l\'{name}"}}', "texts", "a.b: The apostrophe before"),
        ("pt", '{"a": "\\ud800"}', "texts", "a: "),
        ("pt", '{"a": "\\u0000"}', "texts", "a: "),
        ("pt", '{"a":' * 100_000, "texts", "It is nested too deeply."),
        ("pt", '{"a":' * 200 + "{}" + "}" * 200, "texts", "At most 8 levels."),
    ],
)
def test_problem_of_translations_is_at_its_field(
    editor: Client, name: str, texts: str, place: str, text: str
) -> None:
    fields = {"name": name, "texts": texts}
    page = save(editor, f"{LIST}new/translation/", fields, base=0)
    assert page.context["form"].errors.keys() == {place}
    assert text in " ".join(page.context["form"].errors[place])
    found = preview(editor, f"{LIST}new/translation/preview/", fields, type="order_shipped")
    assert found["errors"].keys() == {place}


def test_translations_of_the_default_language_are_kept_while_they_are_used(editor: Client) -> None:
    store(Kind.TRANSLATION, "default", {"bye": "Bye"})
    store(Kind.TRANSLATION, "pt", {"bye": "Tchau"})
    _publish("alert", "{{ 'bye' | t }}")
    used = words(shown(editor, LIST))
    assert "default Alert type" in used
    assert "pt Portuguese Alert type" in used
    assert "It can be removed once nothing uses it." in shown(
        editor, item("translation", "default")
    )
    assert "It can be removed" not in shown(editor, item("translation", "pt"))
    fields = {"revision": designs.revision_of({"bye": "Bye"}), "confirmed": "yes"}
    answer = editor.post(item("translation", "default", "remove/"), fields, follow=True)
    assert "Not removed. The type alert can&#x27;t use it" in answer.content.decode()
    page = save(editor, item("translation", "default"), {"texts": '{"by": "Bye"}'}, base=2)
    assert "The default language has no translation" in page.content.decode()
    assert newest().number == 2


def test_preview_of_translations_is_in_their_language(editor: Client) -> None:
    store(Kind.TRANSLATION, "default", {"bye": "Bye"})
    store(Kind.TRANSLATION, "pt", {"bye": "Tchau"})
    _publish("alert", "{{ 'bye' | t }}")
    url = item("translation", "pt", "preview/")
    found = preview(editor, url, {"texts": '{"bye": "Adeus"}'}, type="alert", language="")
    assert found["text"].startswith("Adeus")
    assert ["pt", "Portuguese", True] in found["languages"]
    again = preview(editor, url, {"texts": '{"bye": "Ciao"}'}, type="alert", language="pt")
    assert again["text"].startswith("Ciao"), "each unsaved design is one of its own"
    own = preview(editor, url, {"texts": '{"bye": "Adeus"}'}, type="alert", language="default")
    assert own["text"].startswith("Bye")
    new = preview(editor, f"{LIST}new/translation/preview/", {"texts": "{}"}, type="alert")
    assert ["und", "New language", True] in new["languages"]
    other = preview(editor, url, type="order_shipped")
    assert "shows none of its texts" in other["note"]
