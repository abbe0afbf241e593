from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem_view import ProblemView
from ...models.suppression_list import SuppressionList
from ...types import Response


def _get_kwargs(
    channel: str,
    address: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/suppressions/{channel}/{address}".format(
            channel=quote(str(channel), safe=""),
            address=quote(str(address), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemView | SuppressionList | None:
    if response.status_code == 200:
        response_200 = SuppressionList.from_dict(response.json())

        return response_200

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
) -> Response[ProblemView | SuppressionList]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    channel: str,
    address: str,
    *,
    client: AuthenticatedClient,
) -> Response[ProblemView | SuppressionList]:
    """List every reason why an address is held back

     List every reason why an address is held back; none: it is not.

    Takes an API key with the scope `suppressions:write`.

    Args:
        channel (str):
        address (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | SuppressionList]
    """

    kwargs = _get_kwargs(
        channel=channel,
        address=address,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    channel: str,
    address: str,
    *,
    client: AuthenticatedClient,
) -> ProblemView | SuppressionList | None:
    """List every reason why an address is held back

     List every reason why an address is held back; none: it is not.

    Takes an API key with the scope `suppressions:write`.

    Args:
        channel (str):
        address (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | SuppressionList
    """

    return sync_detailed(
        channel=channel,
        address=address,
        client=client,
    ).parsed


async def asyncio_detailed(
    channel: str,
    address: str,
    *,
    client: AuthenticatedClient,
) -> Response[ProblemView | SuppressionList]:
    """List every reason why an address is held back

     List every reason why an address is held back; none: it is not.

    Takes an API key with the scope `suppressions:write`.

    Args:
        channel (str):
        address (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | SuppressionList]
    """

    kwargs = _get_kwargs(
        channel=channel,
        address=address,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    channel: str,
    address: str,
    *,
    client: AuthenticatedClient,
) -> ProblemView | SuppressionList | None:
    """List every reason why an address is held back

     List every reason why an address is held back; none: it is not.

    Takes an API key with the scope `suppressions:write`.

    Args:
        channel (str):
        address (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | SuppressionList
    """

    return (
        await asyncio_detailed(
            channel=channel,
            address=address,
            client=client,
        )
    ).parsed
