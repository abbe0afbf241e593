"""The requests in docs/guides/templates.md work as described."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from domain.channels import Channel
from notifications.catalog import types
from notifications.catalog.shipped_types import shipped_types
from notifications.content import rendering
from notifications.content.templates import Part
from notifications.store.reading import content_of, recipient_of
from notifyproject.db.collections import collection
from tests.support.clients.api import App, when
from tests.support.tables import each_case

PAGE = Path(settings.BASE_DIR, "docs", "guides", "templates.md").read_text(encoding="utf-8")
REQUESTS = [
    (method, path, body.strip())
    for method, path, body in re.findall(r"```http\n(\w+) /api/v1(\S+)\n(.*?)```", PAGE, re.DOTALL)
    # The looks of emails are another section, which tests/api/test_design.py tests.
    if path != "/design"
]
Received = Callable[[str], list[dict[str, Any]]]


@pytest.mark.usefixtures("worker")
def test_requests_of_the_page_send_a_mail(app: App, received: Received) -> None:
    assert len(REQUESTS) == 4
    answers = [app.send(path, body.encode(), method=method) for method, path, body in REQUESTS]
    assert [answer.status_code for answer in answers] == [201, 201, 200, 200]
    previews = {channel["channel"]: channel for channel in answers[-1].json()["channels"]}

    answer = app.send("/notifications", REQUESTS[-1][2].encode())
    notification = when(app, answer, "delivered", "partially_delivered", "failed")
    assert notification["content"]["template_version"] == 1
    assert notification["content"]["subject"] == "We are looking for parcel 77"
    # An ID may contain these digits by chance.
    shown = {name: notification[name] for name in ("content", "data", "error_history", "delivery")}
    assert "4321" not in str(shown)
    (request,) = received("ada@example.com")
    text, html = (part["value"] for part in request["body"]["content"])
    assert text == previews["email"]["text"]
    assert "should have reached Porto 1 day ago." in text
    assert html == previews["email"]["html"]
    assert "4321" in html

    stored = collection("notifications").find_one({"user_id": "ada"})
    assert stored is not None
    push = rendering.render_message(
        channel=Channel.PUSH,
        content=content_of(stored),
        data=stored["data"],
        recipient=recipient_of(stored),
    )
    assert (push.subject, push.text) == (previews["push"]["subject"], previews["push"]["text"])
    assert push.text == "It should have reached Porto 1 day ago."


@pytest.mark.usefixtures("worker")
def test_locale_selects_the_translation(app: App, received: Received) -> None:
    for method, path, body in REQUESTS:
        app.send(path, body.encode(), method=method)
    data = {"parcel": "77", "days": 2, "shop": {"city": "Porto"}, "pin": "4321"}
    person = {"email": "rui@example.com", "locale": "pt-BR"}
    answer = app.notify(type="parcel_lost", recipient=person, data=data, channels=["email"])
    when(app, answer, "delivered")
    (request,) = received("rui@example.com")
    assert request["body"]["subject"] == "Procuramos a encomenda 77"
    assert "h\u00e1 2 dias." in request["body"]["content"][0]["value"]


@pytest.mark.usefixtures("worker")
def test_type_is_added_with_two_files_and_a_document(
    app: App, received: Received, templates: Path
) -> None:
    folder = templates / "parcel_found"
    folder.mkdir()
    (folder / "subject.txt").write_text("Parcel {{ parcel }} is found\n")
    (folder / "body.txt").write_text("We have found parcel {{ parcel }}.\n")
    shipped = types.read_type(shipped_types()[0].slug)
    assert shipped is not None
    collection("notification_types").insert_one(
        {**shipped, "_id": "parcel_found", "name": "Parcel found"}
    )
    types.invalidate_types()
    answer = app.notify(type="parcel_found", data={"parcel": "77"})
    when(app, answer, "delivered")
    (request,) = received("ada@example.com")
    assert request["body"]["subject"] == "Parcel 77 is found"
    assert request["body"]["content"][0]["value"] == "We have found parcel 77."
    assert ">We have found parcel 77.</p>" in request["body"]["content"][1]["value"]


@each_case("part", list(Part))
def test_page_names_every_part_and_its_file(part: Part) -> None:
    assert f"| `{part}` | `{part.file_name}` |" in PAGE


def test_schema_of_the_page_refuses_the_data_of_the_page(app: App) -> None:
    schema, problems = map(json.loads, re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[:2])
    method, path, body = REQUESTS[0]
    definition = json.dumps(json.loads(body) | schema).encode()
    assert app.send(path, definition, method=method).status_code == 201
    data = re.search(r'With these two fields.*?`"data": ({.*?})`', PAGE)
    assert data is not None
    content = {"template_id": "parcel_lost"}
    answer = app.notify(type="parcel_lost", content=content, data=json.loads(data[1]))
    found = [error for error in answer.json()["errors"] if error["pointer"].startswith("/data")]
    assert found == problems["errors"]
