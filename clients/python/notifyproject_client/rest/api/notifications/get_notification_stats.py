import datetime
from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.get_notification_stats_by import (
    GetNotificationStatsBy,
)
from ...models.problem_view import ProblemView
from ...models.statistics_view import StatisticsView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    by: GetNotificationStatsBy | Unset = "status",
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_by: str | Unset = UNSET
    if not isinstance(by, Unset):
        json_by = by

    params["by"] = json_by

    json_created_after: str | Unset = UNSET
    if not isinstance(created_after, Unset):
        json_created_after = created_after.isoformat()
    params["created_after"] = json_created_after

    json_created_before: str | Unset = UNSET
    if not isinstance(created_before, Unset):
        json_created_before = created_before.isoformat()
    params["created_before"] = json_created_before

    params["user_id"] = user_id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/notifications/stats",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemView | StatisticsView | None:
    if response.status_code == 200:
        response_200 = StatisticsView.from_dict(response.json())

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
) -> Response[ProblemView | StatisticsView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    by: GetNotificationStatsBy | Unset = "status",
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> Response[ProblemView | StatisticsView]:
    """Count notifications, those sent and those failed, with their average attempts

     Count notifications, those sent and those failed, with their average attempts.

    Of more than 100,000 the newest are counted, and complete is false: narrow the time.

    Takes an API key with the scope `notifications:read`.

    Args:
        by (GetNotificationStatsBy | Unset):  Default: 'status'.
        created_after (datetime.datetime | Unset):
        created_before (datetime.datetime | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | StatisticsView]
    """

    kwargs = _get_kwargs(
        by=by,
        created_after=created_after,
        created_before=created_before,
        user_id=user_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    by: GetNotificationStatsBy | Unset = "status",
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> ProblemView | StatisticsView | None:
    """Count notifications, those sent and those failed, with their average attempts

     Count notifications, those sent and those failed, with their average attempts.

    Of more than 100,000 the newest are counted, and complete is false: narrow the time.

    Takes an API key with the scope `notifications:read`.

    Args:
        by (GetNotificationStatsBy | Unset):  Default: 'status'.
        created_after (datetime.datetime | Unset):
        created_before (datetime.datetime | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | StatisticsView
    """

    return sync_detailed(
        client=client,
        by=by,
        created_after=created_after,
        created_before=created_before,
        user_id=user_id,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    by: GetNotificationStatsBy | Unset = "status",
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> Response[ProblemView | StatisticsView]:
    """Count notifications, those sent and those failed, with their average attempts

     Count notifications, those sent and those failed, with their average attempts.

    Of more than 100,000 the newest are counted, and complete is false: narrow the time.

    Takes an API key with the scope `notifications:read`.

    Args:
        by (GetNotificationStatsBy | Unset):  Default: 'status'.
        created_after (datetime.datetime | Unset):
        created_before (datetime.datetime | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemView | StatisticsView]
    """

    kwargs = _get_kwargs(
        by=by,
        created_after=created_after,
        created_before=created_before,
        user_id=user_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    by: GetNotificationStatsBy | Unset = "status",
    created_after: datetime.datetime | Unset = UNSET,
    created_before: datetime.datetime | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> ProblemView | StatisticsView | None:
    """Count notifications, those sent and those failed, with their average attempts

     Count notifications, those sent and those failed, with their average attempts.

    Of more than 100,000 the newest are counted, and complete is false: narrow the time.

    Takes an API key with the scope `notifications:read`.

    Args:
        by (GetNotificationStatsBy | Unset):  Default: 'status'.
        created_after (datetime.datetime | Unset):
        created_before (datetime.datetime | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemView | StatisticsView
    """

    return (
        await asyncio_detailed(
            client=client,
            by=by,
            created_after=created_after,
            created_before=created_before,
            user_id=user_id,
        )
    ).parsed
