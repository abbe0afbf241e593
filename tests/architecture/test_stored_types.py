"""Each model has a typed document with its fields, and each collection a handle.

What is stored has these types: also checked after each test of ``tests/end_to_end``.
"""

import importlib
from datetime import datetime
from types import GenericAlias, ModuleType
from typing import Any, get_type_hints

import pytest
from bson import ObjectId
from django.apps import apps
from django.db import models
from django_mongodb_backend.fields import (
    ArrayField,
    EmbeddedModelArrayField,
    EmbeddedModelField,
    ObjectIdAutoField,
    ObjectIdField,
)
from django_mongodb_backend.models import EmbeddedModel

from domain.time import utc_now
from monitoring import rollup_state
from notifyproject.db.collections import Documents
from tests.support.factories.one_of_each import store_one_of_each
from tests.support.mongo.stored_types import handles, mismatches
from tests.support.source import SERVICE

PLAIN: list[tuple[type[models.Field], type]] = [
    (ObjectIdField, ObjectId),
    (ObjectIdAutoField, ObjectId),
    (models.BooleanField, bool),
    (models.FloatField, float),
    (models.IntegerField, int),
    (models.DateTimeField, datetime),
    (models.CharField, str),
    (models.TextField, str),
]
"""Types of fields, and of their stored values. A JSON value may have any type."""


MODELS = [
    model
    for model in apps.get_models()
    if model.__module__.partition(".")[0] in SERVICE and not model._meta.proxy
]
STORED = [model for model in MODELS if not issubclass(model, EmbeddedModel)]


def documents_of(model: type[models.Model]) -> ModuleType:
    package, _, rest = model.__module__.partition(".models")
    return importlib.import_module(f"{package}.documents{rest}")


def document_of(model: type[models.Model]) -> Any:
    return getattr(documents_of(model), f"{model.__name__}Document", None)


def value_of(field: models.Field) -> Any:
    """Return the type of a field's stored value, without null."""
    if isinstance(field, EmbeddedModelArrayField):
        return GenericAlias(list, (document_of(field.embedded_model),))
    if isinstance(field, EmbeddedModelField):
        return document_of(field.embedded_model)
    if isinstance(field, ArrayField):
        return GenericAlias(list, (value_of(field.base_field),))
    return next(stored for kind, stored in PLAIN if isinstance(field, kind))


def fields_of(model: type[models.Model]) -> dict[str, models.Field]:
    is_embedded = issubclass(model, EmbeddedModel)
    return {
        "_id" if field.primary_key else field.column: field
        for field in model._meta.concrete_fields
        if not (field.primary_key and is_embedded)
    }


def test_each_document_has_the_names_and_types_of_its_model() -> None:
    for model in MODELS:
        fields, hints = fields_of(model), get_type_hints(document_of(model))
        assert list(hints) == list(fields), f"{model.__name__}: the names, in this order"
        for name, field in fields.items():
            if isinstance(field, models.JSONField):
                continue
            stored = value_of(field)
            allowed = [stored, stored | None] if field.null else [stored]
            assert hints[name] in allowed, f"{model.__name__}.{name} should be {stored}"


def test_field_that_may_be_missing_is_not_required() -> None:
    for model in MODELS:
        required = document_of(model).__required_keys__
        wrong = {name for name, field in fields_of(model).items() if field.null} & required
        assert not wrong, f"{model.__name__}: {sorted(wrong)}"


def test_each_collection_has_a_handle_with_its_document() -> None:
    for model in STORED:
        name = model._meta.db_table
        handle = getattr(documents_of(model), name.upper(), None)
        assert handle == Documents(name, document_of(model)), f"{name.upper()} of {model.__name__}"


def test_no_document_is_without_a_model() -> None:
    known = {document_of(model) for model in MODELS}
    for module in {documents_of(model) for model in MODELS}:
        for name, value in vars(module).items():
            if name.endswith("Document"):
                assert value in known, f"{module.__name__}.{name}"


@pytest.mark.usefixtures("db")
def test_one_document_of_each_page_has_its_type() -> None:
    store_one_of_each(now=utc_now())
    claim = rollup_state.acquire_lease(now=utc_now())
    assert claim is not None
    assert mismatches(handles()) == set()
