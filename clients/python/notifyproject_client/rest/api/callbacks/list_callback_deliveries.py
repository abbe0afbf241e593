from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.callback_delivery_list import CallbackDeliveryList
from ...models.list_callback_deliveries_status import (
    ListCallbackDeliveriesStatus,
)
from ...models.problem_view import ProblemView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListCallbackDeliveriesStatus | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["limit"] = limit

    json_status: str | Unset = UNSET
    if not isinstance(status, Unset):
        json_status = status

    params["status"] = json_status

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/callbacks/deliveries",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CallbackDeliveryList | ProblemView | None:
    if response.status_code == 200:
        response_200 = CallbackDeliveryList.from_dict(response.json())

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
) -> Response[CallbackDeliveryList | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListCallbackDeliveriesStatus | Unset = UNSET,
) -> Response[CallbackDeliveryList | ProblemView]:
    """List what the app was told in the last 30 days, newest first

     List what the app was told in the last 30 days, newest first.

    Takes an API key with the scope `callbacks:write`.

    Args:
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        status (ListCallbackDeliveriesStatus | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CallbackDeliveryList | ProblemView]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        limit=limit,
        status=status,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListCallbackDeliveriesStatus | Unset = UNSET,
) -> CallbackDeliveryList | ProblemView | None:
    """List what the app was told in the last 30 days, newest first

     List what the app was told in the last 30 days, newest first.

    Takes an API key with the scope `callbacks:write`.

    Args:
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        status (ListCallbackDeliveriesStatus | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CallbackDeliveryList | ProblemView
    """

    return sync_detailed(
        client=client,
        cursor=cursor,
        limit=limit,
        status=status,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListCallbackDeliveriesStatus | Unset = UNSET,
) -> Response[CallbackDeliveryList | ProblemView]:
    """List what the app was told in the last 30 days, newest first

     List what the app was told in the last 30 days, newest first.

    Takes an API key with the scope `callbacks:write`.

    Args:
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        status (ListCallbackDeliveriesStatus | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CallbackDeliveryList | ProblemView]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        limit=limit,
        status=status,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListCallbackDeliveriesStatus | Unset = UNSET,
) -> CallbackDeliveryList | ProblemView | None:
    """List what the app was told in the last 30 days, newest first

     List what the app was told in the last 30 days, newest first.

    Takes an API key with the scope `callbacks:write`.

    Args:
        cursor (str | Unset):
        limit (int | Unset):  Default: 20.
        status (ListCallbackDeliveriesStatus | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CallbackDeliveryList | ProblemView
    """

    return (
        await asyncio_detailed(
            client=client,
            cursor=cursor,
            limit=limit,
            status=status,
        )
    ).parsed
