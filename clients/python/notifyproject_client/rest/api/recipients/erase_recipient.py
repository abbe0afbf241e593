from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.erasure_view import ErasureView
from ...models.problem_view import ProblemView
from ...types import Response


def _get_kwargs(
    user_id: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/recipients/{user_id}".format(
            user_id=quote(str(user_id), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErasureView | ProblemView | None:
    if response.status_code == 200:
        response_200 = ErasureView.from_dict(response.json())

        return response_200

    if response.status_code == 202:
        response_202 = ErasureView.from_dict(response.json())

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
) -> Response[ErasureView | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    user_id: str,
    *,
    client: AuthenticatedClient,
) -> Response[ErasureView | ProblemView]:
    """Erase a person, registered or not

     Erase a person, registered or not; 202 with Retry-After if it has to be sent again.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        user_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErasureView | ProblemView]
    """

    kwargs = _get_kwargs(
        user_id=user_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    user_id: str,
    *,
    client: AuthenticatedClient,
) -> ErasureView | ProblemView | None:
    """Erase a person, registered or not

     Erase a person, registered or not; 202 with Retry-After if it has to be sent again.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        user_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErasureView | ProblemView
    """

    return sync_detailed(
        user_id=user_id,
        client=client,
    ).parsed


async def asyncio_detailed(
    user_id: str,
    *,
    client: AuthenticatedClient,
) -> Response[ErasureView | ProblemView]:
    """Erase a person, registered or not

     Erase a person, registered or not; 202 with Retry-After if it has to be sent again.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        user_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErasureView | ProblemView]
    """

    kwargs = _get_kwargs(
        user_id=user_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    user_id: str,
    *,
    client: AuthenticatedClient,
) -> ErasureView | ProblemView | None:
    """Erase a person, registered or not

     Erase a person, registered or not; 202 with Retry-After if it has to be sent again.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        user_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErasureView | ProblemView
    """

    return (
        await asyncio_detailed(
            user_id=user_id,
            client=client,
        )
    ).parsed
