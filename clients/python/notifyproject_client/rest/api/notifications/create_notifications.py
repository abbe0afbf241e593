from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.bulk_request import BulkRequest
from ...models.bulk_view import BulkView
from ...models.problem_view import ProblemView
from ...types import Response


def _get_kwargs(
    *,
    body: BulkRequest,
    idempotency_key: str,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/notifications/bulk",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> BulkView | ProblemView | None:
    if response.status_code == 200:
        response_200 = BulkView.from_dict(response.json())

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
) -> Response[BulkView | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: BulkRequest,
    idempotency_key: str,
) -> Response[BulkView | ProblemView]:
    """Accept up to 1,000 notifications

     Accept up to 1,000 notifications.

    A bad item does not stop the others. Of equal items the first is accepted, and the others
    are answered with 409. With too much waiting to be sent already, only critical ones are
    accepted: the others are answered with 503, and so is a call without any. What was
    rejected is to be sent again in another call, under another key.

    Takes an API key with the scope `notifications:write`.

    Args:
        idempotency_key (str):
        body (BulkRequest): Many notifications to accept, each by itself.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BulkView | ProblemView]
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
    body: BulkRequest,
    idempotency_key: str,
) -> BulkView | ProblemView | None:
    """Accept up to 1,000 notifications

     Accept up to 1,000 notifications.

    A bad item does not stop the others. Of equal items the first is accepted, and the others
    are answered with 409. With too much waiting to be sent already, only critical ones are
    accepted: the others are answered with 503, and so is a call without any. What was
    rejected is to be sent again in another call, under another key.

    Takes an API key with the scope `notifications:write`.

    Args:
        idempotency_key (str):
        body (BulkRequest): Many notifications to accept, each by itself.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BulkView | ProblemView
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: BulkRequest,
    idempotency_key: str,
) -> Response[BulkView | ProblemView]:
    """Accept up to 1,000 notifications

     Accept up to 1,000 notifications.

    A bad item does not stop the others. Of equal items the first is accepted, and the others
    are answered with 409. With too much waiting to be sent already, only critical ones are
    accepted: the others are answered with 503, and so is a call without any. What was
    rejected is to be sent again in another call, under another key.

    Takes an API key with the scope `notifications:write`.

    Args:
        idempotency_key (str):
        body (BulkRequest): Many notifications to accept, each by itself.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BulkView | ProblemView]
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
    body: BulkRequest,
    idempotency_key: str,
) -> BulkView | ProblemView | None:
    """Accept up to 1,000 notifications

     Accept up to 1,000 notifications.

    A bad item does not stop the others. Of equal items the first is accepted, and the others
    are answered with 409. With too much waiting to be sent already, only critical ones are
    accepted: the others are answered with 503, and so is a call without any. What was
    rejected is to be sent again in another call, under another key.

    Takes an API key with the scope `notifications:write`.

    Args:
        idempotency_key (str):
        body (BulkRequest): Many notifications to accept, each by itself.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BulkView | ProblemView
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
