"""The installed Python client was built from the current OpenAPI document."""

from pathlib import Path

from django.conf import settings
from drf_spectacular.renderers import OpenApiYamlRenderer
from notifyproject_client import rest

from tests.support.openapi import api_document, api_operations

CLIENT = Path(settings.BASE_DIR, "clients", "python")


def test_client_is_built_from_the_current_description() -> None:
    text = OpenApiYamlRenderer().render(api_document(), renderer_context={})
    kept = (CLIENT / "openapi.yaml").read_bytes()
    assert kept == text, "the API has changed: run make client"


def test_client_has_every_operation() -> None:
    package = Path(rest.__file__).parent
    functions = {path.stem.replace("_", "") for path in package.glob("api/*/*.py")}
    assert {name.lower() for name in api_operations()} <= functions
