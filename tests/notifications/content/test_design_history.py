"""Who changed which brand, layout, or partial, what uses it, and designs that are only tried."""

from typing import Any

import pytest

from domain.content import Look
from domain.states import BroadcastStatus
from domain.time import utc_now
from notifications.catalog import designs
from notifications.catalog.designs import Design, Kind
from notifications.content import design_changes, design_history, design_uses, looks, templates
from notifications.content.design_changes import Change, Outcome
from notifications.content.design_uses import Uses
from notifications.validation import InvalidRequestError
from notifyproject.db.collections import collection
from tests.support.factories.broadcasts import begun
from tests.support.factories.templates import publish_version

pytestmark = pytest.mark.usefixtures("db")

B = BroadcastStatus
FINAL = {B.REJECTED, B.EXPIRED, B.CANCELLING, B.CANCELLED, B.COMPLETED, B.FAILED}
LAYOUT = "<html><body>{{ content }}{% render 'foot' %}{{ unsubscribe_url }}</body></html>"


def store(kind: Kind, name: str, content: Any, *, by: str = "staff:maria") -> Design:
    present = designs.read_newest().items(kind).get(name)
    change = Change(
        kind=kind,
        name=name,
        content=content,
        replaces=None if present is None else designs.revision_of(present),
        pointer="",
    )
    return design_changes.store([change], created_by=by, now=utc_now()).design


def text(words: str) -> dict[str, dict[str, str]]:
    return {"default": {"text": words, "html": f"<p>{words}</p>"}}


def brand(name: str = "Acme", **fields: Any) -> dict[str, Any]:
    known = {"name": name, "logo": None, "colours": {}, "footer": "", "layout": None}
    return known | fields


def test_each_design_says_what_it_changed_and_who_made_it() -> None:
    store(Kind.PARTIAL, "foot", text("Bye"))
    store(Kind.BRAND, "acme", brand(), by="app:shop")
    store(Kind.PARTIAL, "foot", text("Ciao"))
    newest = store(Kind.BRAND, "acme", None)
    found = design_history.list_editions(limit=10)
    assert [(e.number, e.created_by, [(c.name, c.outcome) for c in e.changes]) for e in found] == [
        (4, "staff:maria", [("acme", Outcome.REMOVED)]),
        (3, "staff:maria", [("foot", Outcome.CHANGED)]),
        (2, "app:shop", [("acme", Outcome.CREATED)]),
        (1, "staff:maria", [("foot", Outcome.CREATED)]),
    ]
    assert design_history.list_editions(below=4, limit=2) == found[1:3]
    assert design_history.find_edition(2) == found[2]
    assert design_history.find_edition(9) is None
    assert newest.changed_in == {"partial/foot": 3}
    assert design_history.last_editions(newest)["partial/foot"].number == 3


def test_versions_of_an_item_end_where_it_was_created() -> None:
    store(Kind.PARTIAL, "foot", text("Old"))
    store(Kind.PARTIAL, "foot", None)
    store(Kind.PARTIAL, "foot", text("New"))
    store(Kind.PARTIAL, "other", text("Other"))
    newest = store(Kind.PARTIAL, "foot", text("Newer"))
    found = design_history.editions_of(newest, Kind.PARTIAL, "foot", limit=10)
    assert [edition.number for edition in found] == [5, 3]
    assert design_history.editions_of(newest, Kind.PARTIAL, "foot", limit=1) == found[:1]
    assert design_history.editions_of(newest, Kind.PARTIAL, "none", limit=1) == []


def test_uses_are_those_of_types_and_of_other_items() -> None:
    store(Kind.PARTIAL, "foot", text("Bye"))
    store(Kind.PARTIAL, "around", {"default": {"text": "{% render 'foot' %}"}})
    store(Kind.LAYOUT, "plain", LAYOUT)
    newest = store(Kind.BRAND, "acme", brand(layout="plain"))
    collection("notification_types").update_one(
        {"_id": "mfa_code"}, {"$set": {"brand": "acme", "layout": "plain"}}
    )
    templates.create_version(
        type_slug="alert",
        parts={"default": {"subject": "S", "body": "{% render 'around' %}"}},
        note="",
        created_by="",
        now=utc_now(),
    )
    publish_version(type_slug="alert", number=1, now=utc_now())
    assert design_uses.read_uses(newest) == {
        (Kind.BRAND, "acme"): Uses(types=("mfa_code",)),
        (Kind.LAYOUT, "plain"): Uses(types=("mfa_code",), items=((Kind.BRAND, "acme"),)),
        (Kind.PARTIAL, "around"): Uses(types=("alert",)),
        (Kind.PARTIAL, "foot"): Uses(
            types=("alert",), items=((Kind.PARTIAL, "around"), (Kind.LAYOUT, "plain"))
        ),
    }


def test_brand_of_a_broadcast_that_is_still_read_stays() -> None:
    broadcast_id = begun(at=utc_now())
    store(Kind.BRAND, "acme", brand())
    for status in BroadcastStatus:
        collection("broadcasts").update_one(
            {"_id": broadcast_id}, {"$set": {"request.brand": "acme", "status": status.value}}
        )
        if status in FINAL:
            assert store(Kind.BRAND, "acme", None).brands == {}
            store(Kind.BRAND, "acme", brand())
            continue
        with pytest.raises(InvalidRequestError) as refused:
            store(Kind.BRAND, "acme", None)
        (problem,) = refused.value.problems
        assert problem.code == "in_use", status
        assert problem.detail == f"Used by the broadcast {broadcast_id}."


def test_tried_design_is_rendered_in_its_context_alone() -> None:
    stored = store(Kind.BRAND, "acme", brand())
    changed = Design(number=stored.number + 1, brands={"acme": brand("Acme Ltd")})
    with designs.trying(changed) as tried:
        assert tried.number < 0
        found = looks.brand_of(Look(design=tried.number, brand="acme"))
        assert found is not None
        assert found.name == "Acme Ltd"
        with designs.trying(changed) as again:
            assert again.number == tried.number
        assert designs.numbered(stored.number).brands == stored.brands
    with pytest.raises(designs.UnknownDesignError):
        designs.numbered(tried.number)
    with pytest.raises(designs.UnknownDesignError):
        designs.numbered(changed.number)


def test_tried_texts_are_rendered_in_their_context_alone() -> None:
    parts = {"default": {"subject": "S", "body": "Tried"}}
    with templates.trying("alert", parts) as number:
        located = templates.locate("alert", number, templates.Part.BODY, None)
        assert located is not None
        assert located.text == "Tried"
        with pytest.raises(templates.UnknownVersionError):
            templates.parts_of("other", number)
    with pytest.raises(templates.UnknownVersionError):
        templates.parts_of("alert", number)
