"""The design routes: partials, layouts, and brands, and the notifications that use them."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bson import ObjectId
from django.contrib.admin.models import LogEntry
from pymongo import monitoring

from access.models import Scope
from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app, pointers, request
from tests.support.fakes.provider import ScriptedProvider
from tests.support.tables import each_case

PATH = "/design"
EMAIL = Channel("email")
LAYOUT = (
    "<html><head><style>.card { color: {{ brand.colours.light.text }}; }</style></head>"
    '<body class="card">{{ brand.name }}: {{ content }}'
    "{% if unsubscribe_url %}<a href='{{ unsubscribe_url }}'>Stop</a>{% endif %}</body></html>"
)
BRAND = {
    "name": "Acme",
    "logo": {"url": "https://cdn.example.com/acme.png", "dark_url": None, "width": 120},
    "colours": {"light": {"accent": "#b91c1c"}},
    "footer": "Acme, 1 High Street\nLisbon",
}
FOOTER = {"default": {"text": "Bye, {{ name }}.", "html": "<p>Bye, <b>{{ name }}</b>.</p>"}}
TYPE = {"name": "Parcel", "category": "transactional", "channels": ["email"]}


class _Commands(monitoring.CommandListener):
    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.found[event.command_name] += 1

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass


COMMANDS = _Commands()
monitoring.register(COMMANDS)


def change(app: App, **changes: Any) -> Any:
    return app.post(PATH, changes)


def put(app: App, **changes: Any) -> dict[str, Any]:
    answer = change(app, **changes)
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()
    return found


def partial(name: str = "footer", texts: Any = FOOTER, **more: Any) -> dict[str, Any]:
    return {"partials": [{"name": name, "texts": texts, **more}]}


def layout(name: str = "main", html: str | None = LAYOUT, **more: Any) -> dict[str, Any]:
    return {"layouts": [{"name": name, "html": html, **more}]}


def brand(name: str = "acme", fields: Any = BRAND, **more: Any) -> dict[str, Any]:
    return {"brands": [{"name": name, "brand": fields, **more}]}


def revision(app: App, kind: str, name: str) -> str:
    found = {item["name"]: item["revision"] for item in app.get(PATH).json()[kind]}
    return str(found[name])


def define(app: App, parts: dict[str, str], **fields: Any) -> None:
    """Create the type ``parcel`` with a published template."""
    definition = {**TYPE, "example_data": {"name": "Ada"}, **fields}
    stored = app.get("/type-files", limit=100).json()["results"]
    file = {
        "slug": "parcel",
        "revision": next((each["revision"] for each in stored if each["slug"] == "parcel"), None),
        "definition": definition,
        "parts": {"default": parts},
    }
    answer = app.post("/type-files", {"types": [file], "publish": True})
    assert answer.status_code == 200, answer.json()


def accept(app: App, **fields: Any) -> dict[str, Any]:
    answer = app.post(
        "/notifications", request(**{"type": "parcel", "data": {"name": "Ada"}, **fields})
    )
    assert answer.status_code == 202, answer.json()
    found: dict[str, Any] = answer.json()
    return found


def send(*accepted: dict[str, Any], by: ScriptedProvider) -> Sequence[Any]:
    ids = [ObjectId(found["id"]) for found in accepted]
    before = len(by.seen)
    pipeline.dispatch(SendingRuntime(), ids, channel=EMAIL, clock=utc_now)
    return [seen.message for seen in by.seen[before:]]


def test_items_are_stored_and_shown_with_revisions(app: App) -> None:
    nothing = {"partials": [], "layouts": [], "brands": [], "translations": []}
    assert app.get(PATH).json() == {"number": 0, **nothing}
    shown = put(app, **partial(), **layout(), **brand())
    assert shown["number"] == 1
    assert app.get(PATH).json() == shown
    assert shown["partials"][0]["texts"] == FOOTER
    assert shown["layouts"][0]["html"] == LAYOUT
    assert shown["brands"][0]["brand"]["colours"]["light"]["accent"] == "#b91c1c"
    messages = {entry.object_id: entry.change_message for entry in LogEntry.objects.all()}
    assert messages.keys() == {"partial/footer", "layout/main", "brand/acme"}
    assert messages["partial/footer"].endswith("Created, in design 1.")


def test_repetition_has_no_effect_and_another_revision_is_a_conflict(app: App) -> None:
    put(app, **partial())
    assert put(app, **partial())["number"] == 1
    assert LogEntry.objects.count() == 1
    other = {"default": {"text": "Ciao."}}
    answer = change(app, **partial(texts=other))
    assert (answer.status_code, pointers(answer)) == (409, {"/partials/0/revision": "changed"})
    known = revision(app, "partials", "footer")
    assert put(app, **partial(texts=other, revision=known))["number"] == 2
    assert pointers(change(app, **partial(texts=None, revision=known))) == {
        "/partials/0/revision": "changed"
    }
    known = revision(app, "partials", "footer")
    assert put(app, **partial(texts=None, revision=known))["partials"] == []


def test_of_two_writers_of_one_partial_one_wins_and_others_all_do(app: App) -> None:
    apps = [new_app(f"writer-{number}") for number in range(6)]
    texts = [{"default": {"text": f"Text {number}."}} for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        same = list(pool.map(lambda n: change(apps[n], **partial(texts=texts[n])), range(6)))
        others = list(pool.map(lambda n: change(apps[n], **partial(f"p{n}", texts[n])), range(6)))
    assert sorted(answer.status_code for answer in same) == [200, *[409] * 5]
    assert [answer.status_code for answer in others] == [200] * 6
    shown = app.get(PATH).json()
    assert shown["number"] == 7
    assert len(shown["partials"]) == 7


def test_dry_run_and_refused_change_store_nothing(app: App) -> None:
    assert put(app, **partial(), dry_run=True)["number"] == 1
    answer = change(app, **partial(), **layout(html="<html>{{ content }}</html>"))
    assert pointers(answer) == {"/layouts/0/html": "required"}
    assert app.get(PATH).json()["number"] == 0


def test_scope_is_templates_write(app: App) -> None:
    reader = new_app("reader", Scope.NOTIFICATIONS_WRITE)
    assert reader.get(PATH).status_code == change(reader, **partial()).status_code == 403


@each_case(
    "changes, place, code",
    [
        (partial("a", {"default": {"text": "{% render 'a' %}"}}), "/default/text", "partial"),
        (
            partial("a", {"default": {"html": "{% render 'b' %}"}}),
            "/default/html",
            "unknown_partial",
        ),
        (partial("a", {"default": {"text": "{{ a"}}), "/default/text", "syntax"),
        (partial("a", {"default": {"text": "{% render foo %}"}}), "/default/text", "partial"),
        (partial("a", {"default": {"html": "{% if a"}}), "/default/html", "syntax"),
        (partial("a", {"pt": {"text": "{{ a | nope }}"}}), "/pt/text", "unknown_filter"),
        (partial("a", {"pt": {"html": "{{ a | safe }}"}}), "/pt/html", "unknown_filter"),
        (partial("a", {"Portuguese": {"text": "a"}}), "/Portuguese", "invalid_locale"),
    ],
)
def test_faulty_partial_is_refused(
    app: App, changes: dict[str, Any], place: str, code: str
) -> None:
    assert pointers(change(app, **changes)) == {f"/partials/0/texts{place}": code}


def test_two_partials_that_render_each_other_are_refused(app: App) -> None:
    both = [
        {"name": "a", "texts": {"default": {"text": "{% render 'b' %}"}}},
        {"name": "b", "texts": {"default": {"text": "{% render 'a' %}"}}},
    ]
    answer = change(app, partials=both)
    assert set(pointers(answer).values()) == {"partial"}
    assert "a → b → a" in answer.content.decode()


MALFORMED = ["{% render foo %}", "{% render 'a", "{% if a", "{% render 'none' %}"]


@each_case("text", MALFORMED)
def test_malformed_partial_beside_a_layout_is_refused(app: App, text: str) -> None:
    html = LAYOUT.replace("{{ content }}", "{{ content }}{% render 'a' %}")
    for language in ("default", "pt"):
        texts = {"default": {"html": "<p>Bye</p>"}} | {language: {"html": text}}
        answer = change(app, **partial("a", texts), **layout(html=html))
        assert f"/partials/0/texts/{language}/html" in pointers(answer)


@each_case("text", MALFORMED)
def test_malformed_partial_of_a_stored_layout_is_refused(app: App, text: str) -> None:
    html = LAYOUT.replace("{{ content }}", "{{ content }}{% render 'a' %}")
    texts = {"default": {"html": "<p>Bye</p>"}}
    if "a" not in {each["name"] for each in app.get(PATH).json()["partials"]}:
        put(app, **partial("a", texts), **layout(html=html))
    of = revision(app, "partials", "a")
    for language in ("default", "pt"):
        answer = change(app, **partial("a", texts | {language: {"html": text}}, revision=of))
        assert f"/partials/0/texts/{language}/html" in pointers(answer)
    answer = change(app, partials=[{"name": "a", "revision": of, "texts": None}])
    assert answer.status_code == 422


@each_case("text", MALFORMED)
def test_malformed_layout_is_refused(app: App, text: str) -> None:
    assert "/layouts/0/html" in pointers(change(app, **layout(html=LAYOUT + text)))


@each_case(
    "html, code",
    [
        ("<html>{{ unsubscribe_url }}</html>", "required"),
        ("<html>{{ content }}</html>", "required"),
        (f"{LAYOUT}{{{{ subject | safe }}}}", "unknown_filter"),
        (f"{LAYOUT}{{{{ order.id }}}}", "missing_variable"),
        (f"{LAYOUT}{{% if a %}}", "syntax"),
    ],
)
def test_faulty_layout_is_refused(app: App, html: str, code: str) -> None:
    assert pointers(change(app, **layout(html=html))) == {"/layouts/0/html": code}


@each_case(
    "fields, place, code",
    [
        ({"logo": {"url": "http://cdn.example.com/a.png"}}, "/logo/url", "invalid_url"),
        ({"logo": {"url": "https://10.0.0.1/a.png"}}, "/logo/url", "invalid_url"),
        ({"logo": {"url": "https://example.com/a.SVG?x"}}, "/logo/url", "invalid_image"),
        ({"name": " "}, "/name", "blank"),
        ({"layout": "nope"}, "/layout", "unknown_layout"),
    ],
)
def test_faulty_brand_is_refused(app: App, fields: dict[str, Any], place: str, code: str) -> None:
    answer = change(app, **brand(fields={"name": "Acme", **fields}))
    assert pointers(answer) == {f"/brands/0/brand{place}": code}


def test_colour_is_a_number(app: App) -> None:
    wrong = {"name": "Acme", "colours": {"light": {"accent": "red; } body { display: none"}}}
    assert list(pointers(change(app, **brand(fields=wrong)))) == [
        "/brands/0/brand/colours/light/accent"
    ]


def test_unknown_brand_is_named_with_its_pointer(app: App) -> None:
    answer = app.post("/notifications", request(brand="nope"))
    assert (answer.status_code, pointers(answer)) == (422, {"/brand": "unknown_brand"})
    put(app, **brand())
    both = request(
        brand="acme", data={"order_id": 1, "video_title": "a", "amount": "b", "brand": 1}
    )
    assert pointers(app.post("/notifications", both))["/data/brand"] == "reserved"
    wrong = {**TYPE, "brand": "nope", "layout": "nope"}
    assert pointers(app.put("/types/parcel", wrong)) == {
        "/brand": "unknown_brand",
        "/layout": "unknown_layout",
    }
    broadcast = {
        "type": "marketing",
        "audience": {"all": True},
        "content": {"subject": "S", "body": "B"},
        "brand": "nope",
    }
    assert pointers(app.post("/broadcasts", broadcast)) == {"/brand": "unknown_brand"}


def test_message_has_the_brand_and_the_layout(app: App, fcm: ScriptedProvider) -> None:
    put(app, **layout(), **brand())
    define(app, {"subject": "From {{ brand.name }}", "body": "Hello {{ name }}."}, brand="acme")
    linked = accept(app, content={"deep_link": "https://example.com/1"})
    (built_in,) = send(linked, by=fcm)
    assert built_in.subject == "From Acme"
    assert 'src="https://cdn.example.com/acme.png" alt="Acme" width="120" style=' in built_in.html
    assert 'logo-dark"' not in built_in.html
    assert "Acme, 1 High Street<br>Lisbon" in built_in.html
    assert "#b91c1c" in built_in.html
    define(app, {"subject": "S", "body": "Hello <{{ name }}>."}, brand="acme", layout="main")
    (own,) = send(accept(app), by=fcm)
    assert own.html.startswith('<html><head></head><body class="card" style="color: #374151;">')
    assert "Acme: <p" in own.html
    assert "Hello &lt;Ada&gt;." in own.html
    (unbranded,) = send(accept(app, type="payment_confirmed", **_paid()), by=fcm)
    assert "acme" not in unbranded.html.lower()
    (branded,) = send(accept(app, type="payment_confirmed", brand="acme", **_paid()), by=fcm)
    assert "acme.png" in branded.html


def _paid() -> dict[str, Any]:
    return {"data": {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}}


def test_accepted_notification_keeps_its_design(app: App, fcm: ScriptedProvider) -> None:
    put(app, **partial(), **layout(), **brand())
    parts = {
        "subject": "S",
        "body": "{{ name }}: {% render 'footer' %}",
        "email_html": "<p>Hi.</p>{% render 'footer' %}",
    }
    define(app, parts, brand="acme", layout="main")
    before = accept(app)
    assert before["content"]["body"] == "Ada: Bye, Ada."
    after = accept_after_change(app)
    sent_before, sent_after = send(before, after, by=fcm)
    assert "Bye, <b>Ada</b>." in sent_before.html
    assert "Acme: <p" in sent_before.html
    assert "Ciao." in sent_after.html
    assert "Acme Ltd: <p" in sent_after.html
    assert after["content"]["body"] == "Ada: Ciao."


def accept_after_change(app: App) -> dict[str, Any]:
    texts = {"default": {"text": "Ciao.", "html": "<p>Ciao.</p>"}}
    put(
        app,
        **partial(texts=texts, revision=revision(app, "partials", "footer")),
        **brand(fields={**BRAND, "name": "Acme Ltd"}, revision=revision(app, "brands", "acme")),
    )
    return accept(app)


def test_partial_is_that_of_the_text_in_its_language(app: App) -> None:
    put(app, **partial(texts={"default": {"text": "Bye."}, "pt": {"text": "Adeus."}}))
    file = {
        "slug": "parcel",
        "definition": {**TYPE, "example_data": {"name": "Ada"}},
        "parts": {
            "default": {"subject": "S", "body": "Hi. {% render 'footer' %}"},
            "pt": {"subject": "S", "body": "Olá. {% render 'footer' %}"},
            "de": {"subject": "S", "body": "Hallo. {% render 'footer' %}"},
        },
    }
    assert app.post("/type-files", {"types": [file], "publish": True}).status_code == 200
    bodies = [
        accept(app, recipient={"email": "ada@example.com", "locale": locale})["content"]["body"]
        for locale in ("en", "pt-BR", "de", "fr")
    ]
    assert bodies == ["Hi. Bye.", "Olá. Adeus.", "Hallo. Bye.", "Hi. Bye."]


def test_change_that_breaks_a_published_template_is_refused(app: App) -> None:
    put(app, **partial(), **layout(), **brand())
    define(app, {"subject": "S", "body": "{% render 'footer' %}"}, brand="acme", layout="main")
    known = {
        kind: revision(app, f"{kind}s", name)
        for kind, name in (("partial", "footer"), ("layout", "main"), ("brand", "acme"))
    }
    answer = change(
        app,
        **partial(texts={"default": {"text": "{{ order.id }}"}}, revision=known["partial"]),
    )
    assert pointers(answer) == {"/partials/0": "in_use"}
    assert "The type parcel can't use it: body, default, line 1: " in answer.content.decode()
    removed = change(app, **partial(texts=None, revision=known["partial"]))
    assert pointers(removed) == {"/partials/0": "in_use"}
    removals = {
        **layout(html=None, revision=known["layout"]),
        **brand(fields=None, revision=known["brand"]),
    }
    assert pointers(change(app, **removals)) == {"/layouts/0": "in_use", "/brands/0": "in_use"}
    assert app.get(PATH).json()["number"] == 1


def test_template_with_an_unknown_partial_is_refused_and_not_published(app: App) -> None:
    assert app.put("/types/parcel", TYPE).status_code == 201
    parts = {"default": {"subject": "S", "body": "a\n{% render 'footer' %}"}}
    versions = "/types/parcel/templates"
    refused = app.post(versions, {"parts": parts})
    assert pointers(refused) == {"/parts/default/body": "unknown_partial"}
    put(app, **partial(texts={"default": {"text": "Bye."}}))
    assert app.post(versions, {"parts": parts}).status_code == 201
    put(app, **partial(texts=None, revision=revision(app, "partials", "footer")))
    assert pointers(app.post(f"{versions}/versions/1/publish", {})) == {
        "/parts/default/body": "unknown_partial"
    }


def test_secret_in_a_link_of_a_partial_is_refused(app: App) -> None:
    link = {"default": {"text": "https://example.com/?c={{ code }}", "html": "<p>{{ code }}</p>"}}
    put(app, **partial("link", link))
    definition = {**TYPE, "example_data": {"pin": "1234"}, "sensitive_variables": ["pin"]}
    parts = {"default": {"subject": "S", "body": "{% render 'link', code: pin %}"}}
    file = {"slug": "pins", "definition": definition, "parts": parts}
    answer = app.post("/type-files", {"types": [file], "publish": True})
    assert pointers(answer) == {"/types/0/parts/default/body": "sensitive_in_url"}
    parts["default"]["body"] = "Hi."
    parts["default"]["email_html"] = "{% render 'link', code: pin %}"
    assert app.post("/type-files", {"types": [file], "publish": True}).status_code == 200


def test_notification_without_a_look_reads_nothing_more(app: App, fcm: ScriptedProvider) -> None:
    """Also in a process that has never read a design, while others use one."""

    def commands(**fields: Any) -> Counter[str]:
        found = accept(app, type="payment_confirmed", **_paid(), **fields)
        send(found, by=fcm)
        COMMANDS.found.clear()
        found = accept(app, type="payment_confirmed", **_paid(), **fields)
        at_intake = Counter(COMMANDS.found)
        send(found, by=fcm)
        stored = collection("notifications").find_one({"_id": ObjectId(found["id"])})
        assert stored is not None
        assert ("look" in stored["content"]) is ("brand" in fields)
        COMMANDS.found["intake"] = at_intake.total()
        return Counter(COMMANDS.found)

    without_designs = commands()
    put(app, **partial(), **layout(), **brand())
    commands()
    assert commands() == without_designs
    commands(brand="acme")
    # A process reads a design once.
    assert commands(brand="acme") == without_designs


def test_partial_that_breaks_a_layout_is_refused(app: App) -> None:
    foot = "<a href='{{ unsubscribe_url }}'>Stop</a>"
    html = "<html><body>{{ content }}{% render 'foot' %}</body></html>"
    texts = {"default": {"html": foot, "text": "Stop: {{ unsubscribe_url }}"}}
    put(app, **partial("foot", texts), **layout("plain", html))
    for changed, code in (
        ({"default": {"html": "<p>Bye</p>", "text": "Bye"}}, "required"),
        ({"default": {"html": foot + "{{ company.vat }}", "text": "Bye"}}, None),
    ):
        answer = change(app, **partial("foot", changed, revision=revision(app, "partials", "foot")))
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert error["pointer"] == "/partials/0"
        assert error["detail"].startswith("The layout plain renders it: ")
        assert code in (None, error["code"])
