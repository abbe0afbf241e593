"""A check of the account without a message."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from domain.time import utc_now
from notifyproject.settings.variables import Environment

from .. import http
from ..aws_responses import read_error
from ..aws_signing import Credentials, Signer
from ..setup_check import TIMEOUT, RejectedError, fetch
from .provider import SERVICE, api_request, base_url_of
from .variables import Settings

SENDERS: Mapping[str, tuple[str, str]] = {
    "pool-": ("Pools", "PoolIds"),
    "phone-": ("PhoneNumbers", "PhoneNumberIds"),
}
"""How to find a sender, by the beginning of its ID. Others are tried by the first message."""
NOT_FOUND = "ResourceNotFoundException"


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Check the account, the sender, and where its events go. Raises CheckError."""
    values = Settings.of(environment)
    signer = Signer(
        credentials=Credentials.of(values, prefix="AWS_SMS"),
        region=values.AWS_SMS_REGION,
        service=SERVICE,
    )
    base_url = base_url_of(values).rstrip("/")

    def read(operation: str, fields: Mapping[str, Any]) -> http.Response:
        request = api_request(
            operation, fields, base_url=base_url, signer=signer, now=utc_now(), timeout=timeout
        )
        return fetch("AWS", request)

    account = read("DescribeAccountAttributes", {})
    if account.status != HTTPStatus.OK:
        raise _rejected(account)
    sender = values.AWS_SMS_SENDER
    for prefix, (listed, member) in SENDERS.items():
        if sender.startswith(prefix):
            found = _items(read(f"Describe{listed}", {member: [sender]}), listed)
            if not any(item.get("Status") == "ACTIVE" for item in found):
                raise RejectedError(f"AWS has no active sender {sender} in the region.")
    name = values.AWS_SMS_CONFIGURATION_SET
    if name:
        sets = _items(
            read("DescribeConfigurationSets", {"ConfigurationSetNames": [name]}),
            "ConfigurationSets",
        )
        _check_topics(name, sets, topics=values.AWS_SMS_TOPICS)


def _check_topics(name: str, sets: list[dict[str, Any]], *, topics: tuple[str, ...]) -> None:
    if not sets:
        raise RejectedError(f"AWS has no configuration set {name} in the region.")
    destinations = sets[0].get("EventDestinations")
    published = {
        http.as_object(destination.get("SnsDestination")).get("TopicArn")
        for destination in (destinations if isinstance(destinations, list) else ())
        if isinstance(destination, dict) and destination.get("Enabled") is True
    }
    if topics and not published & set(topics):
        raise RejectedError(
            f"The configuration set {name} publishes to none of AWS_SMS_TOPICS: add an event "
            "destination to it."
        )


def _items(response: http.Response, name: str) -> list[dict[str, Any]]:
    """Return the objects of a list; none of what isn't found. Raises RejectedError."""
    error = read_error(response)
    if response.status != HTTPStatus.OK and error.name != NOT_FOUND:
        raise _rejected(response)
    found = http.decode_object(response.body).get(name) if response.status == HTTPStatus.OK else ()
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _rejected(response: http.Response) -> RejectedError:
    return RejectedError(
        f"AWS responded with {response.status} {read_error(response).code}: check the key, the "
        "region, and the permissions sms-voice:DescribeAccountAttributes, "
        "sms-voice:DescribeConfigurationSets, sms-voice:DescribePools, and "
        "sms-voice:DescribePhoneNumbers."
    )
