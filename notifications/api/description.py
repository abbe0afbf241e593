"""The description of the API, made once in each process: it takes half a second to make."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer

_made: dict[str | None, bytes] = {}
"""What was made already, by its media type."""


class Description(SpectacularAPIView):
    """OpenAPI 3.1, as YAML or as JSON."""

    content_negotiation_class = DefaultContentNegotiation

    @extend_schema(exclude=True)
    def get(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer with the description in the form that was asked for."""
        renderer: BaseRenderer = request.accepted_renderer
        if renderer.media_type not in _made:
            described = SchemaGenerator().get_schema(request=None, public=True)
            _made[renderer.media_type] = renderer.render(described, renderer_context={})
        return HttpResponse(_made[renderer.media_type], content_type=renderer.media_type)
