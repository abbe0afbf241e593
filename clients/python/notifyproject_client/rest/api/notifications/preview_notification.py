from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.notification_request import NotificationRequest
from ...models.preview_view import PreviewView
from ...models.problem_view import ProblemView
from ...types import Response


def _get_kwargs(
    *,
    body: NotificationRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/notifications/preview",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PreviewView | ProblemView | None:
    if response.status_code == 200:
        response_200 = PreviewView.from_dict(response.json())

        return response_200

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
) -> Response[PreviewView | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: NotificationRequest,
) -> Response[PreviewView | ProblemView]:
    """Check a notification and render it for every channel

     Check a notification and render it for every channel; nothing is sent or stored.

    Takes an API key with the scope `notifications:write`.

    Args:
        body (NotificationRequest): A notification to accept. Only ``type`` and a way to reach
            someone are required.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PreviewView | ProblemView]
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
    body: NotificationRequest,
) -> PreviewView | ProblemView | None:
    """Check a notification and render it for every channel

     Check a notification and render it for every channel; nothing is sent or stored.

    Takes an API key with the scope `notifications:write`.

    Args:
        body (NotificationRequest): A notification to accept. Only ``type`` and a way to reach
            someone are required.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PreviewView | ProblemView
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: NotificationRequest,
) -> Response[PreviewView | ProblemView]:
    """Check a notification and render it for every channel

     Check a notification and render it for every channel; nothing is sent or stored.

    Takes an API key with the scope `notifications:write`.

    Args:
        body (NotificationRequest): A notification to accept. Only ``type`` and a way to reach
            someone are required.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PreviewView | ProblemView]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: NotificationRequest,
) -> PreviewView | ProblemView | None:
    """Check a notification and render it for every channel

     Check a notification and render it for every channel; nothing is sent or stored.

    Takes an API key with the scope `notifications:write`.

    Args:
        body (NotificationRequest): A notification to accept. Only ``type`` and a way to reach
            someone are required.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PreviewView | ProblemView
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
