from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.broadcast_view import BroadcastView
from ...models.problem_view import ProblemView
from ...types import Response


def _get_kwargs(
    broadcast_id: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/broadcasts/{broadcast_id}/cancel".format(
            broadcast_id=quote(str(broadcast_id), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> BroadcastView | ProblemView | None:
    if response.status_code == 202:
        response_202 = BroadcastView.from_dict(response.json())

        return response_202

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
) -> Response[BroadcastView | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    broadcast_id: str,
    *,
    client: AuthenticatedClient,
) -> Response[BroadcastView | ProblemView]:
    """Make no more notifications of a broadcast, and withdraw those that have not been sent

     Make no more notifications of a broadcast, and withdraw those that have not been sent.

    Also of a completed one. It is cancelling until the last of them is withdrawn, or has ended
    because it was being sent already; then it is cancelled.

    Takes an API key with the scope `notifications:write`.

    Args:
        broadcast_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BroadcastView | ProblemView]
    """

    kwargs = _get_kwargs(
        broadcast_id=broadcast_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    broadcast_id: str,
    *,
    client: AuthenticatedClient,
) -> BroadcastView | ProblemView | None:
    """Make no more notifications of a broadcast, and withdraw those that have not been sent

     Make no more notifications of a broadcast, and withdraw those that have not been sent.

    Also of a completed one. It is cancelling until the last of them is withdrawn, or has ended
    because it was being sent already; then it is cancelled.

    Takes an API key with the scope `notifications:write`.

    Args:
        broadcast_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BroadcastView | ProblemView
    """

    return sync_detailed(
        broadcast_id=broadcast_id,
        client=client,
    ).parsed


async def asyncio_detailed(
    broadcast_id: str,
    *,
    client: AuthenticatedClient,
) -> Response[BroadcastView | ProblemView]:
    """Make no more notifications of a broadcast, and withdraw those that have not been sent

     Make no more notifications of a broadcast, and withdraw those that have not been sent.

    Also of a completed one. It is cancelling until the last of them is withdrawn, or has ended
    because it was being sent already; then it is cancelled.

    Takes an API key with the scope `notifications:write`.

    Args:
        broadcast_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BroadcastView | ProblemView]
    """

    kwargs = _get_kwargs(
        broadcast_id=broadcast_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    broadcast_id: str,
    *,
    client: AuthenticatedClient,
) -> BroadcastView | ProblemView | None:
    """Make no more notifications of a broadcast, and withdraw those that have not been sent

     Make no more notifications of a broadcast, and withdraw those that have not been sent.

    Also of a completed one. It is cancelling until the last of them is withdrawn, or has ended
    because it was being sent already; then it is cancelled.

    Takes an API key with the scope `notifications:write`.

    Args:
        broadcast_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BroadcastView | ProblemView
    """

    return (
        await asyncio_detailed(
            broadcast_id=broadcast_id,
            client=client,
        )
    ).parsed
