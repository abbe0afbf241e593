"""A change of the API that breaks a program is found, whatever part of the document it is in."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import yaml

from scripts.release.api_changes import compare
from tests.support.source import ROOT
from tests.support.tables import each_case

Document = dict[str, Any]
Edit = Callable[[Document], object]
NOTE: Document = {
    "openapi": "3.1.0",
    "paths": {
        "/notes": {
            "get": {
                "operationId": "listNotes",
                "x-scope": "notes:read",
                "security": [{"apiKey": []}],
                "parameters": [
                    {"$ref": "#/components/parameters/limit"},
                    {"in": "query", "name": "tags", "schema": {"type": "array"}, "explode": True},
                ],
                "responses": {
                    "200": {
                        "headers": {"RateLimit": {"schema": {"type": "integer"}}},
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "array",
                                    "items": {"$ref": "#/components/schemas/NoteView"},
                                }
                            }
                        },
                    },
                    "404": {"$ref": "#/components/responses/NotFound"},
                },
            },
            "post": {
                "operationId": "createNote",
                "x-scope": "notes:write",
                "security": [{"apiKey": []}, {"token": []}],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/NoteRequest"}
                        },
                        "text/csv": {"schema": {"type": "string"}},
                    }
                },
                "responses": {"202": {"description": "Accepted"}},
            },
        }
    },
    "webhooks": {
        "note.read": {
            "post": {
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/NoteView"}}
                    }
                }
            }
        }
    },
    "components": {
        "parameters": {
            "limit": {"in": "query", "name": "limit", "schema": {"type": "integer", "maximum": 100}}
        },
        "responses": {"NotFound": {"description": "There is none"}},
        "schemas": {
            "Colour": {"enum": ["red", "green"]},
            "NoteRequest": {
                "type": "object",
                "required": ["text"],
                "additionalProperties": False,
                "properties": {
                    "text": {"type": "string", "minLength": 1, "maxLength": 20},
                    "colour": {"$ref": "#/components/schemas/Colour"},
                    "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
                    "rank": {"type": "number"},
                    "tags": {"type": "array", "maxItems": 5, "items": {"type": "string"}},
                    "data": {"type": "object", "additionalProperties": {"type": "string"}},
                    "parent": {
                        "anyOf": [{"$ref": "#/components/schemas/NoteRequest"}, {"type": "null"}]
                    },
                },
            },
            "NoteView": {
                "type": "object",
                "required": ["id", "colour", "state"],
                "properties": {
                    "id": {"type": "string"},
                    "colour": {"$ref": "#/components/schemas/Colour"},
                    "state": {"enum": ["open", "done"]},
                    "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
                    "size": {"type": "integer"},
                },
            },
        },
    },
}


def listing(document: Document) -> Document:
    found: Document = document["paths"]["/notes"]["get"]
    return found


def creation(document: Document) -> Document:
    found: Document = document["paths"]["/notes"]["post"]
    return found


def schema(document: Document, name: str) -> Document:
    found: Document = document["components"]["schemas"][name]
    return found


def asked(document: Document) -> Document:
    found: Document = schema(document, "NoteRequest")["properties"]
    return found


def answered(document: Document) -> Document:
    found: Document = schema(document, "NoteView")["properties"]
    return found


def found(edit: Edit) -> list[tuple[str, bool]]:
    changed = deepcopy(NOTE)
    edit(changed)
    return [(change.where, change.breaks) for change in compare(NOTE, changed)]


BREAKING: list[tuple[str, Edit]] = [
    # Operations.
    ("POST /notes", lambda d: d["paths"]["/notes"].pop("post")),
    ("GET /notes", lambda d: listing(d).update(operationId="getNotes")),
    ("GET /notes", lambda d: listing(d).update({"x-scope": "notes:all"})),
    ("POST /notes", lambda d: creation(d).update(security=[{"apiKey": []}])),
    ("GET /notes", lambda d: listing(d).update(security=[{"apiKey": [], "token": []}])),
    ("callback note.read", lambda d: d["webhooks"].clear()),
    # Parameters.
    ("GET /notes query tags", lambda d: listing(d)["parameters"].pop()),
    ("GET /notes query tags", lambda d: listing(d)["parameters"][1].update(required=True)),
    ("GET /notes query tags", lambda d: listing(d)["parameters"][1].update(explode=False)),
    (
        "GET /notes query since",
        lambda d: listing(d)["parameters"].append(
            {"in": "query", "name": "since", "required": True}
        ),
    ),
    (
        "GET /notes query limit",
        lambda d: d["components"]["parameters"]["limit"]["schema"].update(maximum=50),
    ),
    # Bodies.
    ("POST /notes body", lambda d: creation(d)["requestBody"].update(required=True)),
    ("POST /notes body", lambda d: creation(d)["requestBody"]["content"].pop("text/csv")),
    ("NoteRequest (request)/colour", lambda d: asked(d).pop("colour")),
    ("NoteRequest (request)/rank", lambda d: schema(d, "NoteRequest")["required"].append("rank")),
    ("NoteRequest (request)/new", lambda d: schema(d, "NoteRequest")["required"].append("new")),
    ("NoteRequest (request)/text", lambda d: asked(d)["text"].update(maxLength=19)),
    ("NoteRequest (request)/text", lambda d: asked(d)["text"].update(minLength=2)),
    ("NoteRequest (request)/text", lambda d: asked(d)["text"].update(pattern="^[a-z]")),
    ("NoteRequest (request)/text", lambda d: asked(d)["text"].update({"enum": ["a"]})),
    ("NoteRequest (request)/rank", lambda d: asked(d)["rank"].update(type="integer")),
    ("NoteRequest (request)/rank", lambda d: asked(d)["rank"].update(minimum=0)),
    ("NoteRequest (request)/rank", lambda d: asked(d)["rank"].update(multipleOf=2)),
    ("NoteRequest (request)/tags", lambda d: asked(d)["tags"].update(maxItems=4)),
    ("NoteRequest (request)/tags[]", lambda d: asked(d)["tags"]["items"].update(maxLength=9)),
    ("NoteRequest (request)/data", lambda d: asked(d)["data"].update(maxProperties=9)),
    ("NoteRequest (request)/data/*", lambda d: asked(d)["data"].update(additionalProperties=False)),
    (
        "NoteRequest (request)/data/*",
        lambda d: asked(d)["data"]["additionalProperties"].update(maxLength=9),
    ),
    ("NoteRequest (request)/due", lambda d: asked(d)["due"]["anyOf"].pop()),
    ("NoteRequest (request)/due", lambda d: asked(d)["due"]["anyOf"][0].update(format="date-time")),
    # Answers.
    ("GET /notes 404", lambda d: listing(d)["responses"].pop("404")),
    ("GET /notes 200 RateLimit", lambda d: listing(d)["responses"]["200"]["headers"].clear()),
    (
        "GET /notes 200",
        lambda d: listing(d)["responses"]["200"].update(content={"application/xml": {}}),
    ),
    ("NoteView (answer)/size", lambda d: answered(d).pop("size")),
    ("NoteView (answer)/id", lambda d: schema(d, "NoteView")["required"].remove("id")),
    ("NoteView (answer)/id", lambda d: answered(d)["id"].update(type=["string", "null"])),
    ("NoteView (answer)/size", lambda d: answered(d)["size"].update(type="number")),
    ("NoteView (answer)/state", lambda d: answered(d)["state"]["enum"].remove("done")),
    ("NoteView (answer)/due", lambda d: answered(d)["due"]["anyOf"][0].pop("format")),
    ("NoteView (answer)/due", lambda d: answered(d)["due"]["anyOf"].append({"type": "integer"})),
    ("NoteView (answer)", lambda d: schema(d, "NoteView").update(allOf=[{"type": "object"}])),
]


@each_case("where, edit", BREAKING)
def test_breaking_change_is_found_where_it_is(where: str, edit: Edit) -> None:
    assert found(edit) == [(where, True)]


def test_value_that_is_no_longer_one_breaks_requests_and_answers() -> None:
    changes = found(lambda document: schema(document, "Colour")["enum"].remove("red"))
    assert changes == [("Colour (answer)", True), ("Colour (request)", True)]


ADDITIVE: list[tuple[list[str], Edit]] = [
    (["PUT /notes"], lambda d: d["paths"]["/notes"].update(put={"operationId": "putNotes"})),
    ([], lambda d: listing(d)["parameters"].append({"in": "query", "name": "since"})),
    ([], lambda d: creation(d)["security"].append({"session": []})),
    ([], lambda d: d["components"]["parameters"]["limit"]["schema"].update(maximum=200)),
    ([], lambda d: asked(d).update(new={"type": "string"})),
    ([], lambda d: schema(d, "NoteRequest")["required"].clear()),
    ([], lambda d: schema(d, "NoteRequest").pop("additionalProperties")),
    ([], lambda d: asked(d)["text"].update(maxLength=30, type=["string", "null"])),
    ([], lambda d: asked(d)["due"]["anyOf"].append({"type": "integer"})),
    ([], lambda d: asked(d)["text"].update(title="Text", description="Of the note")),
    ([], lambda d: listing(d)["responses"].update({"410": {}})),
    ([], lambda d: answered(d).update(new={"type": "string"})),
    ([], lambda d: answered(d)["due"]["anyOf"].pop()),
    ([], lambda d: schema(d, "NoteView")["required"].append("size")),
    # Nobody may rely on it, and the changelog names it.
    (["NoteView (answer)/state"], lambda d: answered(d)["state"]["enum"].append("late")),
    (["NoteView (answer)/state"], lambda d: answered(d).update(state={"type": "string"})),
    ([], lambda d: d["webhooks"].update({"note.made": {"post": {}}})),
]


@each_case("named, edit", ADDITIVE)
def test_addition_breaks_nothing(named: list[str], edit: Edit) -> None:
    assert found(edit) == [(where, False) for where in named]


@pytest.fixture(scope="module")
def published() -> Document:
    text = (ROOT / "clients" / "python" / "openapi.yaml").read_text("utf-8")
    document: Document = yaml.load(text, yaml.CSafeLoader)
    return document


def test_api_is_compatible_with_itself(published: Document) -> None:
    assert compare(published, deepcopy(published)) == []


def test_every_operation_is_compared(published: Document) -> None:
    operations = {
        f"{method.upper()} {path}" for path, item in published["paths"].items() for method in item
    }
    removed = {change.where for change in compare(published, {**published, "paths": {}})}
    assert removed == operations
