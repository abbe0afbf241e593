from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.person_request import PersonRequest
from ...models.person_view import PersonView
from ...models.problem_view import ProblemView
from ...types import Response


def _get_kwargs(
    user_id: str,
    *,
    body: PersonRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/recipients/{user_id}".format(
            user_id=quote(str(user_id), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PersonView | ProblemView | None:
    if response.status_code == 200:
        response_200 = PersonView.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = PersonView.from_dict(response.json())

        return response_201

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
) -> Response[PersonView | ProblemView]:
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
    body: PersonRequest,
) -> Response[PersonView | ProblemView]:
    """Register a person, or make them what the body says

     Register a person, or make them what the body says; 201 for a new one.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        user_id (str):
        body (PersonRequest): A person to register. What is left out is not known afterwards, but
            for quiet hours.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PersonView | ProblemView]
    """

    kwargs = _get_kwargs(
        user_id=user_id,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    user_id: str,
    *,
    client: AuthenticatedClient,
    body: PersonRequest,
) -> PersonView | ProblemView | None:
    """Register a person, or make them what the body says

     Register a person, or make them what the body says; 201 for a new one.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        user_id (str):
        body (PersonRequest): A person to register. What is left out is not known afterwards, but
            for quiet hours.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PersonView | ProblemView
    """

    return sync_detailed(
        user_id=user_id,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    user_id: str,
    *,
    client: AuthenticatedClient,
    body: PersonRequest,
) -> Response[PersonView | ProblemView]:
    """Register a person, or make them what the body says

     Register a person, or make them what the body says; 201 for a new one.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        user_id (str):
        body (PersonRequest): A person to register. What is left out is not known afterwards, but
            for quiet hours.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PersonView | ProblemView]
    """

    kwargs = _get_kwargs(
        user_id=user_id,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    user_id: str,
    *,
    client: AuthenticatedClient,
    body: PersonRequest,
) -> PersonView | ProblemView | None:
    """Register a person, or make them what the body says

     Register a person, or make them what the body says; 201 for a new one.

    Takes an API key with the scope `recipients:write`. A test key gets 403 `test_key`.

    Args:
        user_id (str):
        body (PersonRequest): A person to register. What is left out is not known afterwards, but
            for quiet hours.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PersonView | ProblemView
    """

    return (
        await asyncio_detailed(
            user_id=user_id,
            client=client,
            body=body,
        )
    ).parsed
