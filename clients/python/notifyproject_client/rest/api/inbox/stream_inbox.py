from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem_view import ProblemView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    last_event_id: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(last_event_id, Unset):
        headers["Last-Event-ID"] = last_event_id

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/inbox/stream",
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemView | str | None:
    if response.status_code == 200:
        response_200 = response.text
        return response_200

    if response.status_code == 400:
        response_400 = ProblemView.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = ProblemView.from_dict(response.json())

        return response_401

    if response.status_code == 421:
        response_421 = ProblemView.from_dict(response.json())

        return response_421

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
) -> Response[ProblemView | str]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    last_event_id: str | Unset = UNSET,
) -> Response[ProblemView | str]:
    """Follow the inbox by server-sent events

     Follow the inbox by server-sent events.

    ``notification`` is a new one, with its id as the event's; ``counts`` comes first and
    whenever they change; ``reload`` says that more was missed than is sent again; ``end`` says
    why the stream ends. A comment comes every 15 seconds. With ``Last-Event-ID`` what came
    since is sent first; one may come twice, and its id says so. Browsers follow it by fetch,
    which sends the header with the token, unlike EventSource.

    Takes an inbox token.

    Args:
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | str]
    """

    kwargs = _get_kwargs(
        last_event_id=last_event_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    last_event_id: str | Unset = UNSET,
) -> ProblemView | str | None:
    """Follow the inbox by server-sent events

     Follow the inbox by server-sent events.

    ``notification`` is a new one, with its id as the event's; ``counts`` comes first and
    whenever they change; ``reload`` says that more was missed than is sent again; ``end`` says
    why the stream ends. A comment comes every 15 seconds. With ``Last-Event-ID`` what came
    since is sent first; one may come twice, and its id says so. Browsers follow it by fetch,
    which sends the header with the token, unlike EventSource.

    Takes an inbox token.

    Args:
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | str
    """

    return sync_detailed(
        client=client,
        last_event_id=last_event_id,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    last_event_id: str | Unset = UNSET,
) -> Response[ProblemView | str]:
    """Follow the inbox by server-sent events

     Follow the inbox by server-sent events.

    ``notification`` is a new one, with its id as the event's; ``counts`` comes first and
    whenever they change; ``reload`` says that more was missed than is sent again; ``end`` says
    why the stream ends. A comment comes every 15 seconds. With ``Last-Event-ID`` what came
    since is sent first; one may come twice, and its id says so. Browsers follow it by fetch,
    which sends the header with the token, unlike EventSource.

    Takes an inbox token.

    Args:
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | str]
    """

    kwargs = _get_kwargs(
        last_event_id=last_event_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    last_event_id: str | Unset = UNSET,
) -> ProblemView | str | None:
    """Follow the inbox by server-sent events

     Follow the inbox by server-sent events.

    ``notification`` is a new one, with its id as the event's; ``counts`` comes first and
    whenever they change; ``reload`` says that more was missed than is sent again; ``end`` says
    why the stream ends. A comment comes every 15 seconds. With ``Last-Event-ID`` what came
    since is sent first; one may come twice, and its id says so. Browsers follow it by fetch,
    which sends the header with the token, unlike EventSource.

    Takes an inbox token.

    Args:
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | str
    """

    return (
        await asyncio_detailed(
            client=client,
            last_event_id=last_event_id,
        )
    ).parsed
