"""The installed Python client was built from the current OpenAPI document."""

from pathlib import Path

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer
from notifyproject_client import rest

CLIENT = Path(settings.BASE_DIR, "clients", "python")


def test_client_is_built_from_the_current_description() -> None:
    present = SchemaGenerator().get_schema(request=None, public=True)
    text = OpenApiYamlRenderer().render(present, renderer_context={})
    kept = (CLIENT / "openapi.yaml").read_bytes()
    assert kept == text, "the API has changed: run make client"


def test_client_has_every_operation() -> None:
    package = Path(rest.__file__).parent
    schema = SchemaGenerator().get_schema(request=None, public=True)
    functions = {path.stem.replace("_", "") for path in package.glob("api/*/*.py")}
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert operation["operationId"].lower() in functions
