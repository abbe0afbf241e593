import datetime
from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.list_notifications_category import (
    ListNotificationsCategory,
)
from ...models.list_notifications_channel import (
    ListNotificationsChannel,
)
from ...models.list_notifications_delivery_status import (
    ListNotificationsDeliveryStatus,
)
from ...models.list_notifications_status import (
    ListNotificationsStatus,
)
from ...models.notification_list import NotificationList
from ...models.problem_view import ProblemView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    category: ListNotificationsCategory | Unset = UNSET,
    channel: ListNotificationsChannel | Unset = UNSET,
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    delivery_status: ListNotificationsDeliveryStatus | Unset = UNSET,
    entity_id: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListNotificationsStatus | Unset = UNSET,
    type_: str | Unset = UNSET,
    unread: bool | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_category: str | Unset = UNSET
    if not isinstance(category, Unset):
        json_category = category

    params["category"] = json_category

    json_channel: str | Unset = UNSET
    if not isinstance(channel, Unset):
        json_channel = channel

    params["channel"] = json_channel

    json_created_after: str | Unset = UNSET
    if not isinstance(created_after, Unset):
        json_created_after = created_after.isoformat()
    params["created_after"] = json_created_after

    json_created_before: str | Unset = UNSET
    if not isinstance(created_before, Unset):
        json_created_before = created_before.isoformat()
    params["created_before"] = json_created_before

    params["cursor"] = cursor

    json_delivery_status: str | Unset = UNSET
    if not isinstance(delivery_status, Unset):
        json_delivery_status = delivery_status

    params["delivery_status"] = json_delivery_status

    params["entity_id"] = entity_id

    params["external_id"] = external_id

    params["limit"] = limit

    json_status: str | Unset = UNSET
    if not isinstance(status, Unset):
        json_status = status

    params["status"] = json_status

    params["type"] = type_

    params["unread"] = unread

    params["user_id"] = user_id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/notifications",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> NotificationList | ProblemView | None:
    if response.status_code == 200:
        response_200 = NotificationList.from_dict(response.json())

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
) -> Response[NotificationList | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    category: ListNotificationsCategory | Unset = UNSET,
    channel: ListNotificationsChannel | Unset = UNSET,
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    delivery_status: ListNotificationsDeliveryStatus | Unset = UNSET,
    entity_id: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListNotificationsStatus | Unset = UNSET,
    type_: str | Unset = UNSET,
    unread: bool | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> Response[NotificationList | ProblemView]:
    """List notifications, newest first

     List notifications, newest first.

    Takes an API key with the scope `notifications:read`.

    Args:
        category (ListNotificationsCategory | Unset):
        channel (ListNotificationsChannel | Unset):
        created_after (datetime.datetime | Unset):
        created_before (datetime.datetime | Unset):
        cursor (str | Unset):
        delivery_status (ListNotificationsDeliveryStatus | Unset):
        entity_id (str | Unset):
        external_id (str | Unset):
        limit (int | Unset):  Default: 20.
        status (ListNotificationsStatus | Unset):
        type_ (str | Unset):
        unread (bool | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NotificationList | ProblemView]
    """

    kwargs = _get_kwargs(
        category=category,
        channel=channel,
        created_after=created_after,
        created_before=created_before,
        cursor=cursor,
        delivery_status=delivery_status,
        entity_id=entity_id,
        external_id=external_id,
        limit=limit,
        status=status,
        type_=type_,
        unread=unread,
        user_id=user_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    category: ListNotificationsCategory | Unset = UNSET,
    channel: ListNotificationsChannel | Unset = UNSET,
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    delivery_status: ListNotificationsDeliveryStatus | Unset = UNSET,
    entity_id: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListNotificationsStatus | Unset = UNSET,
    type_: str | Unset = UNSET,
    unread: bool | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> NotificationList | ProblemView | None:
    """List notifications, newest first

     List notifications, newest first.

    Takes an API key with the scope `notifications:read`.

    Args:
        category (ListNotificationsCategory | Unset):
        channel (ListNotificationsChannel | Unset):
        created_after (datetime.datetime | Unset):
        created_before (datetime.datetime | Unset):
        cursor (str | Unset):
        delivery_status (ListNotificationsDeliveryStatus | Unset):
        entity_id (str | Unset):
        external_id (str | Unset):
        limit (int | Unset):  Default: 20.
        status (ListNotificationsStatus | Unset):
        type_ (str | Unset):
        unread (bool | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NotificationList | ProblemView
    """

    return sync_detailed(
        client=client,
        category=category,
        channel=channel,
        created_after=created_after,
        created_before=created_before,
        cursor=cursor,
        delivery_status=delivery_status,
        entity_id=entity_id,
        external_id=external_id,
        limit=limit,
        status=status,
        type_=type_,
        unread=unread,
        user_id=user_id,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    category: ListNotificationsCategory | Unset = UNSET,
    channel: ListNotificationsChannel | Unset = UNSET,
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    delivery_status: ListNotificationsDeliveryStatus | Unset = UNSET,
    entity_id: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListNotificationsStatus | Unset = UNSET,
    type_: str | Unset = UNSET,
    unread: bool | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> Response[NotificationList | ProblemView]:
    """List notifications, newest first

     List notifications, newest first.

    Takes an API key with the scope `notifications:read`.

    Args:
        category (ListNotificationsCategory | Unset):
        channel (ListNotificationsChannel | Unset):
        created_after (datetime.datetime | Unset):
        created_before (datetime.datetime | Unset):
        cursor (str | Unset):
        delivery_status (ListNotificationsDeliveryStatus | Unset):
        entity_id (str | Unset):
        external_id (str | Unset):
        limit (int | Unset):  Default: 20.
        status (ListNotificationsStatus | Unset):
        type_ (str | Unset):
        unread (bool | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NotificationList | ProblemView]
    """

    kwargs = _get_kwargs(
        category=category,
        channel=channel,
        created_after=created_after,
        created_before=created_before,
        cursor=cursor,
        delivery_status=delivery_status,
        entity_id=entity_id,
        external_id=external_id,
        limit=limit,
        status=status,
        type_=type_,
        unread=unread,
        user_id=user_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    category: ListNotificationsCategory | Unset = UNSET,
    channel: ListNotificationsChannel | Unset = UNSET,
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    delivery_status: ListNotificationsDeliveryStatus | Unset = UNSET,
    entity_id: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    limit: int | Unset = 20,
    status: ListNotificationsStatus | Unset = UNSET,
    type_: str | Unset = UNSET,
    unread: bool | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> NotificationList | ProblemView | None:
    """List notifications, newest first

     List notifications, newest first.

    Takes an API key with the scope `notifications:read`.

    Args:
        category (ListNotificationsCategory | Unset):
        channel (ListNotificationsChannel | Unset):
        created_after (datetime.datetime | Unset):
        created_before (datetime.datetime | Unset):
        cursor (str | Unset):
        delivery_status (ListNotificationsDeliveryStatus | Unset):
        entity_id (str | Unset):
        external_id (str | Unset):
        limit (int | Unset):  Default: 20.
        status (ListNotificationsStatus | Unset):
        type_ (str | Unset):
        unread (bool | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NotificationList | ProblemView
    """

    return (
        await asyncio_detailed(
            client=client,
            category=category,
            channel=channel,
            created_after=created_after,
            created_before=created_before,
            cursor=cursor,
            delivery_status=delivery_status,
            entity_id=entity_id,
            external_id=external_id,
            limit=limit,
            status=status,
            type_=type_,
            unread=unread,
            user_id=user_id,
        )
    ).parsed
