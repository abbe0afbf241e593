from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, QueryDict
from django.urls import ResolverMatch

class Request:
    _request: HttpRequest
    user: Any
    accepted_renderer: Any
    method: str
    path: str
    headers: Mapping[str, str]
    META: Mapping[str, Any]
    resolver_match: ResolverMatch
    def __init__(
        self,
        request: HttpRequest,
        parsers: Sequence[Any] | None = ...,
        authenticators: Sequence[Any] | None = ...,
        negotiator: Any = ...,
        parser_context: Mapping[str, Any] | None = ...,
    ) -> None: ...
    @property
    def query_params(self) -> QueryDict: ...
