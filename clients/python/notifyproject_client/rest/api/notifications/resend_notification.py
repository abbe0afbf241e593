from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.channels_request import ChannelsRequest
from ...models.notification_view import NotificationView
from ...models.problem_view import ProblemView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    notification_id: str,
    *,
    body: ChannelsRequest | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/notifications/{notification_id}/resend".format(
            notification_id=quote(str(notification_id), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> NotificationView | ProblemView | None:
    if response.status_code == 202:
        response_202 = NotificationView.from_dict(response.json())

        return response_202

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

    if response.status_code == 409:
        response_409 = ProblemView.from_dict(response.json())

        return response_409

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
) -> Response[NotificationView | ProblemView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    notification_id: str,
    *,
    client: AuthenticatedClient,
    body: ChannelsRequest | Unset = UNSET,
) -> Response[NotificationView | ProblemView]:
    """Send a notification again as a new one

     Send a notification again as a new one.

    409 `secret_gone`: it had a code or the like, which is destroyed once all is over.
    409 `content_removed`: it is so old that what it said is not kept any more.

    Takes an API key with the scope `notifications:resend`.

    Args:
        notification_id (str):
        body (ChannelsRequest | Unset): Which channels an action is for; left out: all of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NotificationView | ProblemView]
    """

    kwargs = _get_kwargs(
        notification_id=notification_id,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    notification_id: str,
    *,
    client: AuthenticatedClient,
    body: ChannelsRequest | Unset = UNSET,
) -> NotificationView | ProblemView | None:
    """Send a notification again as a new one

     Send a notification again as a new one.

    409 `secret_gone`: it had a code or the like, which is destroyed once all is over.
    409 `content_removed`: it is so old that what it said is not kept any more.

    Takes an API key with the scope `notifications:resend`.

    Args:
        notification_id (str):
        body (ChannelsRequest | Unset): Which channels an action is for; left out: all of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NotificationView | ProblemView
    """

    return sync_detailed(
        notification_id=notification_id,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    notification_id: str,
    *,
    client: AuthenticatedClient,
    body: ChannelsRequest | Unset = UNSET,
) -> Response[NotificationView | ProblemView]:
    """Send a notification again as a new one

     Send a notification again as a new one.

    409 `secret_gone`: it had a code or the like, which is destroyed once all is over.
    409 `content_removed`: it is so old that what it said is not kept any more.

    Takes an API key with the scope `notifications:resend`.

    Args:
        notification_id (str):
        body (ChannelsRequest | Unset): Which channels an action is for; left out: all of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NotificationView | ProblemView]
    """

    kwargs = _get_kwargs(
        notification_id=notification_id,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    notification_id: str,
    *,
    client: AuthenticatedClient,
    body: ChannelsRequest | Unset = UNSET,
) -> NotificationView | ProblemView | None:
    """Send a notification again as a new one

     Send a notification again as a new one.

    409 `secret_gone`: it had a code or the like, which is destroyed once all is over.
    409 `content_removed`: it is so old that what it said is not kept any more.

    Takes an API key with the scope `notifications:resend`.

    Args:
        notification_id (str):
        body (ChannelsRequest | Unset): Which channels an action is for; left out: all of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NotificationView | ProblemView
    """

    return (
        await asyncio_detailed(
            notification_id=notification_id,
            client=client,
            body=body,
        )
    ).parsed
