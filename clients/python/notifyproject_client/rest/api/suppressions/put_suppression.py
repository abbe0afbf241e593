from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem_view import ProblemView
from ...models.suppression_request import SuppressionRequest
from ...models.suppression_view import SuppressionView
from ...types import Response


def _get_kwargs(
    channel: str,
    address: str,
    *,
    body: SuppressionRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/suppressions/{channel}/{address}".format(
            channel=quote(str(channel), safe=""),
            address=quote(str(address), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemView | SuppressionView | None:
    if response.status_code == 200:
        response_200 = SuppressionView.from_dict(response.json())

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

    if response.status_code == 404:
        response_404 = ProblemView.from_dict(response.json())

        return response_404

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
) -> Response[ProblemView | SuppressionView]:
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
    body: SuppressionRequest,
) -> Response[ProblemView | SuppressionView]:
    """Send an address nothing more, or no marketing

     Send an address nothing more, or no marketing; the answer is what stands afterwards.

    Takes an API key with the scope `suppressions:write`. A test key gets 403 `test_key`.

    Args:
        channel (str):
        address (str):
        body (SuppressionRequest): Why an address gets nothing more. What stands already for this
            reason is never loosened.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | SuppressionView]
    """

    kwargs = _get_kwargs(
        channel=channel,
        address=address,
        body=body,
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
    body: SuppressionRequest,
) -> ProblemView | SuppressionView | None:
    """Send an address nothing more, or no marketing

     Send an address nothing more, or no marketing; the answer is what stands afterwards.

    Takes an API key with the scope `suppressions:write`. A test key gets 403 `test_key`.

    Args:
        channel (str):
        address (str):
        body (SuppressionRequest): Why an address gets nothing more. What stands already for this
            reason is never loosened.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | SuppressionView
    """

    return sync_detailed(
        channel=channel,
        address=address,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    channel: str,
    address: str,
    *,
    client: AuthenticatedClient,
    body: SuppressionRequest,
) -> Response[ProblemView | SuppressionView]:
    """Send an address nothing more, or no marketing

     Send an address nothing more, or no marketing; the answer is what stands afterwards.

    Takes an API key with the scope `suppressions:write`. A test key gets 403 `test_key`.

    Args:
        channel (str):
        address (str):
        body (SuppressionRequest): Why an address gets nothing more. What stands already for this
            reason is never loosened.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | SuppressionView]
    """

    kwargs = _get_kwargs(
        channel=channel,
        address=address,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    channel: str,
    address: str,
    *,
    client: AuthenticatedClient,
    body: SuppressionRequest,
) -> ProblemView | SuppressionView | None:
    """Send an address nothing more, or no marketing

     Send an address nothing more, or no marketing; the answer is what stands afterwards.

    Takes an API key with the scope `suppressions:write`. A test key gets 403 `test_key`.

    Args:
        channel (str):
        address (str):
        body (SuppressionRequest): Why an address gets nothing more. What stands already for this
            reason is never loosened.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | SuppressionView
    """

    return (
        await asyncio_detailed(
            channel=channel,
            address=address,
            client=client,
            body=body,
        )
    ).parsed
