"""Actions of a notification in the inbox: declared by its type, chosen once."""

from typing import Any

import pytest

from domain.time import utc_now
from notifications import callback_events
from notifications.catalog import types
from notifyproject.db.collections import collection
from tests.support.clients.api import App, pointers
from tests.support.clients.inbox import InboxUser, delivered
from tests.support.factories import notifications as factories
from tests.support.fakes.callback_receiver import called_back
from tests.support.tables import each_case

APPROVE = {"id": "approve", "label": "Approve", "style": "primary", "link": None}
REJECT = {
    "id": "reject",
    "label": "Reject",
    "style": "danger",
    "link": "https://app.example.com/why",
}
KIND = {"name": "Leave request", "category": "transactional", "channels": ["in_app"]}


@pytest.fixture
def ada(app: App) -> InboxUser:
    assert app.put("/types/leave", KIND | {"actions": [APPROVE, REJECT]}).status_code == 201
    return InboxUser(app=app)


def asked(app: App, **fields: Any) -> Any:
    return delivered(app, type="leave", **fields)


def act(user: InboxUser, document: Any, action: str = "approve") -> Any:
    return user.post(f"/{document['_id']}/actions/{action}")


def test_item_has_the_actions_of_its_type(app: App, ada: InboxUser) -> None:
    asked(app)
    (item,) = ada.get().json()["results"]
    assert item["actions"] == [APPROVE, REJECT]
    assert (item["action"], item["acted_at"]) == (None, None)


def test_first_choice_stays_and_marks_as_read(app: App, ada: InboxUser) -> None:
    document = asked(app)
    first = act(ada, document)
    assert (first.status_code, first.json()["action"], first.json()["is_read"]) == (
        200,
        "approve",
        True,
    )
    again = act(ada, document, "reject").json()
    assert (again["action"], again["acted_at"]) == ("approve", first.json()["acted_at"])
    assert ada.counts() == (0, 0)
    shown = app.get(f"/notifications/{document['_id']}").json()
    assert (shown["action"], shown["acted_at"]) == ("approve", first.json()["acted_at"])


@each_case("action", ["shred", "Approve", "%24ne"])
def test_unknown_action_is_not_found(app: App, ada: InboxUser, action: str) -> None:
    document = asked(app)
    assert act(ada, document, action).status_code == 404
    assert "action" not in factories.read(document["_id"])


def test_other_recipient_cannot_act(app: App, ada: InboxUser) -> None:
    document = asked(app)
    assert act(InboxUser(app=app, user_id="eve"), document).status_code == 404
    assert act(ada, document).status_code == 200


def test_client_is_called_back_once(app: App, ada: InboxUser) -> None:
    called_back("http://127.0.0.1:9/hooks", client_id=app.id)
    content = {"subject": "A leave request", "body": "Grace asks for Friday off."}
    document = app.notify(
        type="leave", user_id="ada", content=content, data={}, channels=["in_app"], recipient=...
    ).json()
    for _ in range(2):
        ada.post(f"/{document['id']}/actions/approve")
        callback_events.publish_events(now=utc_now())
    found = list(collection("callback_messages").find({"type": "notification.acted"}))
    assert len(found) == 1
    assert '"action":"approve"' in found[0]["body"]


@each_case(
    "actions, expected",
    [
        ([APPROVE, APPROVE], {"/actions/1/id": "duplicate"}),
        ([APPROVE | {"id": "Approve it"}], {"/actions/0/id": "invalid_slug"}),
        ([APPROVE | {"style": "loud"}], {"/actions/0/style": "unknown_value"}),
        ([APPROVE | {"link": "javascript:alert(1)"}], {"/actions/0/link": "invalid_link"}),
        ([APPROVE | {"id": f"a{n}"} for n in range(4)], {"/actions": "out_of_range"}),
    ],
)
def test_invalid_action_is_refused(
    app: App, actions: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    answer = app.put("/types/leave", KIND | {"actions": actions})
    assert (answer.status_code, pointers(answer)) == (422, expected)
    assert types.find_type("leave") is None
