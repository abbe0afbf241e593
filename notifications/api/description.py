"""The description of the API, made once in each process: it takes half a second to make."""

from functools import lru_cache
from typing import Any

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer


class Description(SpectacularAPIView):
    """OpenAPI 3.1, as YAML or as JSON."""

    content_negotiation_class = DefaultContentNegotiation

    @extend_schema(exclude=True)
    def get(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer with the description in the form that was asked for."""
        renderer = request.accepted_renderer
        return HttpResponse(_rendered(type(renderer)), content_type=renderer.media_type)


@lru_cache(maxsize=4)
def _rendered(form: type[BaseRenderer]) -> bytes:
    described = SchemaGenerator().get_schema(request=None, public=True)
    rendered: bytes = form().render(described, renderer_context={})
    return rendered
