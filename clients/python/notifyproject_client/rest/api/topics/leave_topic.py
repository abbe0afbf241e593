from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem_view import ProblemView
from ...types import Response


def _get_kwargs(
    topic: str,
    user_id: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/topics/{topic}/members/{user_id}".format(
            topic=quote(str(topic), safe=""),
            user_id=quote(str(user_id), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ProblemView | None:
    if response.status_code == 204:
        response_204 = cast(Any, None)
        return response_204

    if response.status_code == 401:
        response_401 = ProblemView.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = ProblemView.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = ProblemView.from_dict(response.json())

        return response_404

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
) -> Response[Any | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    topic: str,
    user_id: str,
    *,
    client: AuthenticatedClient,
) -> Response[Any | ProblemView]:
    """End a person's membership of a topic

     End a person's membership of a topic.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        topic (str):
        user_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ProblemView]
    """

    kwargs = _get_kwargs(
        topic=topic,
        user_id=user_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    topic: str,
    user_id: str,
    *,
    client: AuthenticatedClient,
) -> Any | ProblemView | None:
    """End a person's membership of a topic

     End a person's membership of a topic.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        topic (str):
        user_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ProblemView
    """

    return sync_detailed(
        topic=topic,
        user_id=user_id,
        client=client,
    ).parsed


async def asyncio_detailed(
    topic: str,
    user_id: str,
    *,
    client: AuthenticatedClient,
) -> Response[Any | ProblemView]:
    """End a person's membership of a topic

     End a person's membership of a topic.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        topic (str):
        user_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ProblemView]
    """

    kwargs = _get_kwargs(
        topic=topic,
        user_id=user_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    topic: str,
    user_id: str,
    *,
    client: AuthenticatedClient,
) -> Any | ProblemView | None:
    """End a person's membership of a topic

     End a person's membership of a topic.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        topic (str):
        user_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ProblemView
    """

    return (
        await asyncio_detailed(
            topic=topic,
            user_id=user_id,
            client=client,
        )
    ).parsed
