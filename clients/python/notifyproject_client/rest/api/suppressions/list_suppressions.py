from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.list_suppressions_channel import (
    ListSuppressionsChannel,
)
from ...models.list_suppressions_reason import (
    ListSuppressionsReason,
)
from ...models.problem_view import ProblemView
from ...models.suppression_list import SuppressionList
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    channel: ListSuppressionsChannel | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    reason: ListSuppressionsReason | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_channel: str | Unset = UNSET
    if not isinstance(channel, Unset):
        json_channel = channel

    params["channel"] = json_channel

    params["cursor"] = cursor

    params["limit"] = limit

    json_reason: str | Unset = UNSET
    if not isinstance(reason, Unset):
        json_reason = reason

    params["reason"] = json_reason

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/suppressions",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemView | SuppressionList | None:
    if response.status_code == 200:
        response_200 = SuppressionList.from_dict(response.json())

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
) -> Response[ProblemView | SuppressionList]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    channel: ListSuppressionsChannel | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    reason: ListSuppressionsReason | Unset = UNSET,
) -> Response[ProblemView | SuppressionList]:
    """List suppressions, newest first

     List suppressions, newest first.

    Takes an API key with the scope `suppressions:write`.

    Args:
        channel (ListSuppressionsChannel | Unset):
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        reason (ListSuppressionsReason | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | SuppressionList]
    """

    kwargs = _get_kwargs(
        channel=channel,
        cursor=cursor,
        limit=limit,
        reason=reason,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    channel: ListSuppressionsChannel | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    reason: ListSuppressionsReason | Unset = UNSET,
) -> ProblemView | SuppressionList | None:
    """List suppressions, newest first

     List suppressions, newest first.

    Takes an API key with the scope `suppressions:write`.

    Args:
        channel (ListSuppressionsChannel | Unset):
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        reason (ListSuppressionsReason | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | SuppressionList
    """

    return sync_detailed(
        client=client,
        channel=channel,
        cursor=cursor,
        limit=limit,
        reason=reason,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    channel: ListSuppressionsChannel | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    reason: ListSuppressionsReason | Unset = UNSET,
) -> Response[ProblemView | SuppressionList]:
    """List suppressions, newest first

     List suppressions, newest first.

    Takes an API key with the scope `suppressions:write`.

    Args:
        channel (ListSuppressionsChannel | Unset):
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        reason (ListSuppressionsReason | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | SuppressionList]
    """

    kwargs = _get_kwargs(
        channel=channel,
        cursor=cursor,
        limit=limit,
        reason=reason,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    channel: ListSuppressionsChannel | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    reason: ListSuppressionsReason | Unset = UNSET,
) -> ProblemView | SuppressionList | None:
    """List suppressions, newest first

     List suppressions, newest first.

    Takes an API key with the scope `suppressions:write`.

    Args:
        channel (ListSuppressionsChannel | Unset):
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        reason (ListSuppressionsReason | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | SuppressionList
    """

    return (
        await asyncio_detailed(
            client=client,
            channel=channel,
            cursor=cursor,
            limit=limit,
            reason=reason,
        )
    ).parsed
