"""The description of the API is there for anybody, in the form they ask for, made once."""

from typing import Any

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from api.openapi import document

URL = "/api/schema"


@pytest.mark.parametrize(
    ("accept", "begins"),
    [
        ("*/*", b"openapi: 3.1.0"),
        ("application/vnd.oai.openapi", b"openapi: 3.1.0"),
        ("application/json", b"{"),
        ("application/vnd.oai.openapi+json", b"{"),
    ],
)
def test_it_comes_in_the_form_that_is_asked_for(client: Client, accept: str, begins: bytes) -> None:
    answer = client.get(URL, headers={"Accept": accept})
    assert (answer.status_code, answer.content[: len(begins)]) == (200, begins)


def test_it_is_made_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    document._rendered.clear()
    made: list[Any] = []
    make = SchemaGenerator.get_schema

    def counted(self: Any, **options: Any) -> Any:
        made.append(options)
        return make(self, **options)

    monkeypatch.setattr(SchemaGenerator, "get_schema", counted)
    assert client.get(URL).content == client.get(f"{URL}?again=1").content
    assert len(made) == 1


def test_what_a_structure_is_for_begins_at_the_margin() -> None:
    """Python 3.13 keeps docstrings without their indentation, and the ones before it with it."""
    schemas = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    texts = {name: schema.get("description", "") for name, schema in schemas.items()}
    assert [name for name, text in texts.items() if "\n    " in text] == []
    assert "\n\nOne that a clock change skips" in texts["LocalTime"]
