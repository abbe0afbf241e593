from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.inbox_list import InboxList
from ...models.problem_view import ProblemView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    archived: bool | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    unread: bool | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["archived"] = archived

    params["cursor"] = cursor

    params["limit"] = limit

    params["unread"] = unread

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/inbox",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> InboxList | ProblemView | None:
    if response.status_code == 200:
        response_200 = InboxList.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = ProblemView.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = ProblemView.from_dict(response.json())

        return response_401

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
) -> Response[InboxList | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    archived: bool | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    unread: bool | Unset = UNSET,
) -> Response[InboxList | ProblemView]:
    """List the inbox, newest first

     List the inbox, newest first.

    Whoever asks for its beginning, without archived and without a cursor, has seen it: what was
    delivered by then is not unseen any more.

    Takes an inbox token.

    Args:
        archived (bool | Unset):
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        unread (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[InboxList | ProblemView]
    """

    kwargs = _get_kwargs(
        archived=archived,
        cursor=cursor,
        limit=limit,
        unread=unread,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    archived: bool | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    unread: bool | Unset = UNSET,
) -> InboxList | ProblemView | None:
    """List the inbox, newest first

     List the inbox, newest first.

    Whoever asks for its beginning, without archived and without a cursor, has seen it: what was
    delivered by then is not unseen any more.

    Takes an inbox token.

    Args:
        archived (bool | Unset):
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        unread (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        InboxList | ProblemView
    """

    return sync_detailed(
        client=client,
        archived=archived,
        cursor=cursor,
        limit=limit,
        unread=unread,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    archived: bool | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    unread: bool | Unset = UNSET,
) -> Response[InboxList | ProblemView]:
    """List the inbox, newest first

     List the inbox, newest first.

    Whoever asks for its beginning, without archived and without a cursor, has seen it: what was
    delivered by then is not unseen any more.

    Takes an inbox token.

    Args:
        archived (bool | Unset):
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        unread (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[InboxList | ProblemView]
    """

    kwargs = _get_kwargs(
        archived=archived,
        cursor=cursor,
        limit=limit,
        unread=unread,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    archived: bool | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    unread: bool | Unset = UNSET,
) -> InboxList | ProblemView | None:
    """List the inbox, newest first

     List the inbox, newest first.

    Whoever asks for its beginning, without archived and without a cursor, has seen it: what was
    delivered by then is not unseen any more.

    Takes an inbox token.

    Args:
        archived (bool | Unset):
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        unread (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        InboxList | ProblemView
    """

    return (
        await asyncio_detailed(
            client=client,
            archived=archived,
            cursor=cursor,
            limit=limit,
            unread=unread,
        )
    ).parsed
