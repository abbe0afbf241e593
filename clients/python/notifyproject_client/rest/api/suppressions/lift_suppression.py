from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.lift_suppression_reason import (
    LiftSuppressionReason,
)
from ...models.lifted_view import LiftedView
from ...models.problem_view import ProblemView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    channel: str,
    address: str,
    *,
    reason: LiftSuppressionReason | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_reason: str | Unset = UNSET
    if not isinstance(reason, Unset):
        json_reason = reason

    params["reason"] = json_reason

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/suppressions/{channel}/{address}".format(
            channel=quote(str(channel), safe=""),
            address=quote(str(address), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> LiftedView | ProblemView | None:
    if response.status_code == 200:
        response_200 = LiftedView.from_dict(response.json())

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

    if response.status_code == 409:
        response_409 = ProblemView.from_dict(response.json())

        return response_409

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
) -> Response[LiftedView | ProblemView]:
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
    reason: LiftSuppressionReason | Unset = UNSET,
) -> Response[LiftedView | ProblemView]:
    """Send to an address again

     Send to an address again. What the person wants is lifted only if `reason` names it.

    Takes an API key with the scope `suppressions:write`. A test key gets 403 `test_key`.

    Args:
        channel (str):
        address (str):
        reason (LiftSuppressionReason | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LiftedView | ProblemView]
    """

    kwargs = _get_kwargs(
        channel=channel,
        address=address,
        reason=reason,
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
    reason: LiftSuppressionReason | Unset = UNSET,
) -> LiftedView | ProblemView | None:
    """Send to an address again

     Send to an address again. What the person wants is lifted only if `reason` names it.

    Takes an API key with the scope `suppressions:write`. A test key gets 403 `test_key`.

    Args:
        channel (str):
        address (str):
        reason (LiftSuppressionReason | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LiftedView | ProblemView
    """

    return sync_detailed(
        channel=channel,
        address=address,
        client=client,
        reason=reason,
    ).parsed


async def asyncio_detailed(
    channel: str,
    address: str,
    *,
    client: AuthenticatedClient,
    reason: LiftSuppressionReason | Unset = UNSET,
) -> Response[LiftedView | ProblemView]:
    """Send to an address again

     Send to an address again. What the person wants is lifted only if `reason` names it.

    Takes an API key with the scope `suppressions:write`. A test key gets 403 `test_key`.

    Args:
        channel (str):
        address (str):
        reason (LiftSuppressionReason | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LiftedView | ProblemView]
    """

    kwargs = _get_kwargs(
        channel=channel,
        address=address,
        reason=reason,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    channel: str,
    address: str,
    *,
    client: AuthenticatedClient,
    reason: LiftSuppressionReason | Unset = UNSET,
) -> LiftedView | ProblemView | None:
    """Send to an address again

     Send to an address again. What the person wants is lifted only if `reason` names it.

    Takes an API key with the scope `suppressions:write`. A test key gets 403 `test_key`.

    Args:
        channel (str):
        address (str):
        reason (LiftSuppressionReason | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LiftedView | ProblemView
    """

    return (
        await asyncio_detailed(
            channel=channel,
            address=address,
            client=client,
            reason=reason,
        )
    ).parsed
