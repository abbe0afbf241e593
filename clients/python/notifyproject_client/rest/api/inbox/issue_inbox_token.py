from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.inbox_token_request import InboxTokenRequest
from ...models.inbox_token_view import InboxTokenView
from ...models.problem_view import ProblemView
from ...types import Response


def _get_kwargs(
    *,
    body: InboxTokenRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/inbox/tokens",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> InboxTokenView | ProblemView | None:
    if response.status_code == 201:
        response_201 = InboxTokenView.from_dict(response.json())

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
) -> Response[InboxTokenView | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: InboxTokenRequest,
) -> Response[InboxTokenView | ProblemView]:
    """Issue a token for one person's inbox

     Issue a token for one person's inbox. It holds for 15 minutes.

    Takes an API key with the scope `inbox:issue`.

    Args:
        body (InboxTokenRequest): Whose inbox a token is for.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[InboxTokenView | ProblemView]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: InboxTokenRequest,
) -> InboxTokenView | ProblemView | None:
    """Issue a token for one person's inbox

     Issue a token for one person's inbox. It holds for 15 minutes.

    Takes an API key with the scope `inbox:issue`.

    Args:
        body (InboxTokenRequest): Whose inbox a token is for.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        InboxTokenView | ProblemView
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: InboxTokenRequest,
) -> Response[InboxTokenView | ProblemView]:
    """Issue a token for one person's inbox

     Issue a token for one person's inbox. It holds for 15 minutes.

    Takes an API key with the scope `inbox:issue`.

    Args:
        body (InboxTokenRequest): Whose inbox a token is for.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[InboxTokenView | ProblemView]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: InboxTokenRequest,
) -> InboxTokenView | ProblemView | None:
    """Issue a token for one person's inbox

     Issue a token for one person's inbox. It holds for 15 minutes.

    Takes an API key with the scope `inbox:issue`.

    Args:
        body (InboxTokenRequest): Whose inbox a token is for.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        InboxTokenView | ProblemView
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
