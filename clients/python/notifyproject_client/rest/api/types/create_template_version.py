from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem_view import ProblemView
from ...models.template_request import TemplateRequest
from ...models.version_view import VersionView
from ...types import Response


def _get_kwargs(
    slug: str,
    *,
    body: TemplateRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/types/{slug}/templates".format(
            slug=quote(str(slug), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemView | VersionView | None:
    if response.status_code == 201:
        response_201 = VersionView.from_dict(response.json())

        return response_201

    if response.status_code == 400:
        response_400 = ProblemView.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = ProblemView.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = ProblemView.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = ProblemView.from_dict(response.json())

        return response_404

    if response.status_code == 409:
        response_409 = ProblemView.from_dict(response.json())

        return response_409

    if response.status_code == 413:
        response_413 = ProblemView.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = ProblemView.from_dict(response.json())

        return response_415

    if response.status_code == 422:
        response_422 = ProblemView.from_dict(response.json())

        return response_422

    if response.status_code == 429:
        response_429 = ProblemView.from_dict(response.json())

        return response_429

    if response.status_code == 503:
        response_503 = ProblemView.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemView | VersionView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    slug: str,
    *,
    client: AuthenticatedClient,
    body: TemplateRequest,
) -> Response[ProblemView | VersionView]:
    """Store a new version of a type's template

     Store a new version of a type's template. Publish it to have it used.

    Takes an API key with the scope `templates:write`. A test key gets 403 `test_key`.

    Args:
        slug (str):
        body (TemplateRequest): A new version of what a type says. It is used by nobody before it
            is published.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | VersionView]
    """

    kwargs = _get_kwargs(
        slug=slug,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    slug: str,
    *,
    client: AuthenticatedClient,
    body: TemplateRequest,
) -> ProblemView | VersionView | None:
    """Store a new version of a type's template

     Store a new version of a type's template. Publish it to have it used.

    Takes an API key with the scope `templates:write`. A test key gets 403 `test_key`.

    Args:
        slug (str):
        body (TemplateRequest): A new version of what a type says. It is used by nobody before it
            is published.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | VersionView
    """

    return sync_detailed(
        slug=slug,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    slug: str,
    *,
    client: AuthenticatedClient,
    body: TemplateRequest,
) -> Response[ProblemView | VersionView]:
    """Store a new version of a type's template

     Store a new version of a type's template. Publish it to have it used.

    Takes an API key with the scope `templates:write`. A test key gets 403 `test_key`.

    Args:
        slug (str):
        body (TemplateRequest): A new version of what a type says. It is used by nobody before it
            is published.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | VersionView]
    """

    kwargs = _get_kwargs(
        slug=slug,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    slug: str,
    *,
    client: AuthenticatedClient,
    body: TemplateRequest,
) -> ProblemView | VersionView | None:
    """Store a new version of a type's template

     Store a new version of a type's template. Publish it to have it used.

    Takes an API key with the scope `templates:write`. A test key gets 403 `test_key`.

    Args:
        slug (str):
        body (TemplateRequest): A new version of what a type says. It is used by nobody before it
            is published.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | VersionView
    """

    return (
        await asyncio_detailed(
            slug=slug,
            client=client,
            body=body,
        )
    ).parsed
