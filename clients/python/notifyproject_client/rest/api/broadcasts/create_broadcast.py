from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.broadcast_request import BroadcastRequest
from ...models.broadcast_view import BroadcastView
from ...models.problem_view import ProblemView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: BroadcastRequest,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/broadcasts",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> BroadcastView | ProblemView | None:
    if response.status_code == 202:
        response_202 = BroadcastView.from_dict(response.json())

        return response_202

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
) -> Response[BroadcastView | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: BroadcastRequest,
    idempotency_key: str | Unset = UNSET,
) -> Response[BroadcastView | ProblemView]:
    """Tell everybody, the members of a topic, or up to 10,000 named people one thing

     Tell everybody, the members of a topic, or up to 10,000 named people one thing.

    The audience is read in the background, a thousand people at a time; GET says how far it is.
    Each person gets a notification of their own, whose broadcast_id says where it comes from,
    and nobody gets two. With too much waiting to be sent, it waits by itself. A type that is
    critical, or has secret variables, is for one person and refused here.

    Takes an API key with the scope `notifications:write`.

    Args:
        idempotency_key (str | Unset):
        body (BroadcastRequest): A message to an audience. What is left out comes from the type,
            as for a notification.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BroadcastView | ProblemView]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: BroadcastRequest,
    idempotency_key: str | Unset = UNSET,
) -> BroadcastView | ProblemView | None:
    """Tell everybody, the members of a topic, or up to 10,000 named people one thing

     Tell everybody, the members of a topic, or up to 10,000 named people one thing.

    The audience is read in the background, a thousand people at a time; GET says how far it is.
    Each person gets a notification of their own, whose broadcast_id says where it comes from,
    and nobody gets two. With too much waiting to be sent, it waits by itself. A type that is
    critical, or has secret variables, is for one person and refused here.

    Takes an API key with the scope `notifications:write`.

    Args:
        idempotency_key (str | Unset):
        body (BroadcastRequest): A message to an audience. What is left out comes from the type,
            as for a notification.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BroadcastView | ProblemView
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: BroadcastRequest,
    idempotency_key: str | Unset = UNSET,
) -> Response[BroadcastView | ProblemView]:
    """Tell everybody, the members of a topic, or up to 10,000 named people one thing

     Tell everybody, the members of a topic, or up to 10,000 named people one thing.

    The audience is read in the background, a thousand people at a time; GET says how far it is.
    Each person gets a notification of their own, whose broadcast_id says where it comes from,
    and nobody gets two. With too much waiting to be sent, it waits by itself. A type that is
    critical, or has secret variables, is for one person and refused here.

    Takes an API key with the scope `notifications:write`.

    Args:
        idempotency_key (str | Unset):
        body (BroadcastRequest): A message to an audience. What is left out comes from the type,
            as for a notification.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BroadcastView | ProblemView]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: BroadcastRequest,
    idempotency_key: str | Unset = UNSET,
) -> BroadcastView | ProblemView | None:
    """Tell everybody, the members of a topic, or up to 10,000 named people one thing

     Tell everybody, the members of a topic, or up to 10,000 named people one thing.

    The audience is read in the background, a thousand people at a time; GET says how far it is.
    Each person gets a notification of their own, whose broadcast_id says where it comes from,
    and nobody gets two. With too much waiting to be sent, it waits by itself. A type that is
    critical, or has secret variables, is for one person and refused here.

    Takes an API key with the scope `notifications:write`.

    Args:
        idempotency_key (str | Unset):
        body (BroadcastRequest): A message to an audience. What is left out comes from the type,
            as for a notification.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BroadcastView | ProblemView
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
