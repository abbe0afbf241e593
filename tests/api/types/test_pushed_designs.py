"""Types and the design that they use, stored together by ``/type-files``."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, pointers
from tests.support.mongo.ending_writes import Ended, ending
from tests.support.tables import each_case

FILES, DESIGN = "/type-files", "/design"
LAYOUT = (
    "<html><body>{{ content }}{% if unsubscribe_url %}"
    "<a href='{{ unsubscribe_url }}'>Stop</a>{% endif %}</body></html>"
)
ITEMS: dict[str, list[dict[str, Any]]] = {
    "partials": [{"name": "hello", "texts": {"default": {"text": "Hello {{ who }}"}}}],
    "layouts": [{"name": "main", "html": LAYOUT}],
    "brands": [{"name": "acme", "brand": {"name": "Acme", "layout": "main"}}],
}
PARCEL: dict[str, Any] = {
    "slug": "parcel_lost",
    "definition": {
        "name": "Parcel lost",
        "category": "transactional",
        "channels": ["email"],
        "example_data": {"name": "Ada"},
        "brand": "acme",
    },
    "parts": {"default": {"subject": "Lost", "body": "{% render 'hello', who: name %}"}},
}


def push(app: App, *types: dict[str, Any], publish: bool = True, **fields: Any) -> Answer:
    return app.post(FILES, {"types": list(types), "publish": publish, **fields})


def design(app: App) -> dict[str, dict[str, Any]]:
    """Return the items of the present design by kind and name."""
    found = app.get(DESIGN).json()
    return {kind: {each["name"]: each for each in found[kind]} for kind in ITEMS}


def revision(app: App, slug: str) -> str | None:
    found = app.get(FILES, limit=100).json()["results"]
    return next((each["revision"] for each in found if each["slug"] == slug), None)


def outcomes(answer: Answer) -> dict[str, str]:
    assert answer.status_code == 200, answer.content
    found = answer.json()
    named = {each["slug"]: each["outcome"] for each in found["results"]}
    return named | {each["name"]: each["outcome"] for kind in ITEMS for each in found[kind]}


CREATED = dict.fromkeys(["parcel_lost", "hello", "main", "acme"], "created")


def test_type_is_stored_with_what_it_uses(app: App) -> None:
    answer = push(app, PARCEL, **ITEMS)
    assert outcomes(answer) == CREATED
    assert answer.json()["brands"][0]["brand"] == {"name": "Acme", "layout": "main"}
    shown = design(app)
    for kind in ITEMS:
        for each in answer.json()[kind]:
            assert shown[kind][each["name"]]["revision"] == each["revision"]
    assert app.notify(type="parcel_lost", content=..., data={"name": "Eve"}).json()["content"][
        "body"
    ] == ("Hello Eve")
    assert outcomes(push(app, PARCEL, **ITEMS)) == dict.fromkeys(CREATED, "unchanged")
    assert app.get(DESIGN).json()["number"] == 1
    messages = {entry.object_id: entry.change_message for entry in LogEntry.objects.all()}
    assert messages["brand/acme"].endswith("Created, in design 1.")


@each_case("fields", [{"publish": False}, {"dry_run": True}])
def test_design_is_stored_only_by_a_publication(app: App, fields: dict[str, bool]) -> None:
    assert outcomes(push(app, PARCEL, **ITEMS, **fields)) == CREATED
    assert app.get(DESIGN).json()["number"] == 0
    assert app.get("/types/parcel_lost").status_code == 404


def test_type_without_what_it_uses_is_refused_with_all_its_problems(app: App) -> None:
    assert pointers(push(app, PARCEL)) == {"/types/0/definition/brand": "unknown_brand"}
    assert pointers(push(app, PARCEL, brands=[{"name": "acme", "brand": {"name": "Acme"}}])) == {
        "/types/0/parts/default/body": "unknown_partial"
    }
    assert pointers(push(app)) == {"/types": "out_of_range"}


def test_what_the_types_of_the_set_use_no_more_can_go_with_them(app: App) -> None:
    push(app, PARCEL, **ITEMS)
    shown = design(app)
    gone: dict[str, Any] = {
        kind: [
            {"name": name, field: None, "revision": shown[kind][name]["revision"]}
            for name in shown[kind]
        ]
        for kind, field in (("partials", "texts"), ("layouts", "html"), ("brands", "brand"))
    }
    plain = {
        "slug": "parcel_lost",
        "revision": revision(app, "parcel_lost"),
        "definition": {**PARCEL["definition"], "brand": None},
        "parts": {"default": {"subject": "Lost", "body": "Hello"}},
    }
    assert pointers(push(app, **gone)) == {"/brands/0": "in_use"}
    assert pointers(push(app, {**plain, "parts": PARCEL["parts"]}, **gone)) == {
        "/types/0/parts/default/body": "unknown_partial"
    }
    removed = push(app, plain, **gone)
    assert outcomes(removed) == {
        "parcel_lost": "changed",
        **dict.fromkeys(["hello", "main", "acme"], "removed"),
    }
    assert {each["revision"] for kind in ITEMS for each in removed.json()[kind]} == {None}
    assert design(app) == {"partials": {}, "layouts": {}, "brands": {}}


def test_partial_that_breaks_another_type_is_refused(app: App) -> None:
    push(app, PARCEL, **ITEMS)
    other = {"default": {"text": "Hello {{ who }} {{ nobody }}"}}
    known = design(app)["partials"]["hello"]["revision"]
    changed = [{"name": "hello", "texts": other, "revision": known}]
    # Unchanged types of the set are checked as those that it doesn't name.
    for types in ((), (PARCEL,)):
        assert pointers(push(app, *types, partials=changed)) == {"/partials/0": "in_use"}


def test_conflicts_are_named_with_their_pointers(app: App) -> None:
    push(app, PARCEL, **ITEMS)
    changed = {
        "partials": [{"name": "hello", "texts": {"default": {"text": "Ciao {{ who }}"}}}],
        "brands": [{"name": "acme", "brand": {"name": "Other"}}],
    }
    renamed = {**PARCEL, "definition": {**PARCEL["definition"], "name": "Gone"}}
    answer = push(app, renamed, **changed)
    assert (answer.status_code, pointers(answer)) == (
        409,
        dict.fromkeys(["/types/0/revision", "/partials/0/revision", "/brands/0/revision"],
                      "changed"),
    )  # fmt: skip
    assert app.get(DESIGN).json()["number"] == 1


def test_brand_is_read_without_defaults_and_is_the_same_with_them(app: App) -> None:
    said = {"name": "Acme", "footer": "", "colours": {"light": {"text": "#374151"}, "dark": {}}}
    push(app, brands=[{"name": "acme", "brand": said}])
    assert design(app)["brands"]["acme"]["brand"] == {"name": "Acme"}
    # As it was stored by a version that knew fewer fields.
    collection("designs").update_one({"_id": 1}, {"$set": {"brands": {"acme": {"name": "Acme"}}}})
    answer = push(app, brands=[{"name": "acme", "brand": said}])
    assert outcomes(answer) == {"acme": "unchanged"}
    assert answer.json()["brands"][0]["revision"] == design(app)["brands"]["acme"]["revision"]


def test_end_at_any_write_leaves_all_old_or_all_new(app: App) -> None:
    """Before each write of a publication and after it: the commit is the one that counts."""
    partial = {"default": {"text": "Hello {{ who }}{{ more }}"}}

    def prepared(turn: str) -> tuple[dict[str, Any], dict[str, Any]]:
        old = {
            **PARCEL,
            "slug": f"a_{turn}",
            "parts": {"default": {"subject": "Old", "body": f"{{% render 'p_{turn}' %}}"}},
        }
        name = f"p_{turn}"
        answer = push(app, old, partials=[{"name": name, "texts": {"default": {"text": "Old"}}}])
        assert answer.status_code == 200, answer.content
        body = f"{{% render '{name}', who: name, more: 'x' %}}"
        new = {
            **old,
            "revision": revision(app, old["slug"]),
            "parts": {"default": {"subject": "New", "body": body}},
        }
        known = design(app)["partials"][name]["revision"]
        return new, {"name": name, "texts": partial, "revision": known}

    def published(new: dict[str, Any], item: dict[str, Any]) -> tuple[bool, bool]:
        found = app.get(FILES, limit=100).json()["results"]
        parts = next(each["parts"] for each in found if each["slug"] == new["slug"])
        return parts == new["parts"], design(app)["partials"][item["name"]]["texts"] == partial

    push(app, **ITEMS)
    new, item = prepared("clean")
    with ending.at(None):
        assert set(outcomes(push(app, new, partials=[item])).values()) == {"changed"}
    writes = ending.count
    states: list[bool] = []
    for number in range(writes):
        for is_before in (True, False):
            new, item = prepared(f"{number}_{'before' if is_before else 'after'}")
            with ending.at(number, is_before=is_before), pytest.raises(Ended):
                push(app, new, partials=[item])
            of_type, of_design = published(new, item)
            assert of_type == of_design, (number, is_before)
            states.append(of_type)
            assert push(app, new, partials=[item]).status_code == 200
            assert published(new, item) == (True, True)
    assert states == sorted(states)
    assert set(states) == {False, True}


def test_items_are_linted_with_the_types_of_the_request_and_all_others(app: App) -> None:
    orange = {"light": {"accent": "#f97316", "on_accent": "#000000"}}
    given: dict[str, Any] = {
        "partials": [
            {
                "name": "foot",
                "texts": {"default": {"html": "<p><img src='https://a.example'></p>"}},
            },
            *ITEMS["partials"],
        ],
        "layouts": ITEMS["layouts"],
        "brands": [{"name": "acme", "brand": {"name": "Acme", "colours": orange}}],
    }
    found = app.post(f"{FILES}/lint", {"types": [PARCEL], **given}).json()["findings"]
    assert [(each["code"], each["pointer"], each["type"]) for each in found] == [
        ("image_without_text", "/partials/0/texts/default/html", None),
        ("unused", "/partials/0", None),
        ("unused", "/layouts/0", None),
        ("low_contrast", "/brands/0/brand/colours/light/accent", None),
    ]
    assert found[1]["docs"].endswith("#unused")
    push(app, PARCEL, **ITEMS)
    known = {"revision": design(app)["layouts"]["main"]["revision"]}
    given = {"layouts": [{**ITEMS["layouts"][0], **known}], "partials": [*ITEMS["partials"]]}
    assert app.post(f"{FILES}/lint", given).json()["findings"] == []
