"""Twilio's errors: of requests, with their HTTP status, and of messages that were accepted."""

from collections.abc import Mapping
from dataclasses import dataclass

HELP = "https://www.twilio.com/docs/errors/{code}"
FAILED, UNDELIVERED = "failed", "undelivered"


@dataclass(frozen=True, slots=True)
class Kind:
    """The meaning of an error code. ``{to}`` stands for the recipient's number."""

    text: str
    status: int = 400


@dataclass(frozen=True, slots=True)
class Failure:
    """The meaning of an error code in a status callback, and the message status with it."""

    text: str
    status: str = FAILED


KINDS: Mapping[int, Kind] = {
    14107: Kind("Message rate limit to {to} exceeded"),
    20001: Kind("Unknown parameters"),
    20003: Kind("Authenticate", status=401),
    20004: Kind("Method not allowed", status=405),
    20005: Kind("Account not active", status=403),
    20403: Kind("Forbidden", status=403),
    20404: Kind("The requested resource was not found", status=404),
    20426: Kind("Upgrade Required", status=426),
    20429: Kind("Too Many Requests", status=429),
    20500: Kind("Internal Server Error", status=500),
    20503: Kind("Service Unavailable", status=503),
    21211: Kind("Invalid 'To' Phone Number: {to}"),
    21212: Kind("Invalid From Number (caller ID)"),
    21265: Kind("'To' number cannot be a Short Code: {to}"),
    21266: Kind("'To' and 'From' number cannot be the same: {to}"),
    21408: Kind(
        "Permission to send an SMS has not been enabled for the region indicated by the 'To' "
        "number: {to}"
    ),
    21602: Kind("Message body is required."),
    21603: Kind("A 'From' phone number is required."),
    21604: Kind("A 'To' phone number is required."),
    21606: Kind(
        "The 'From' phone number provided is not a valid, message-capable Twilio phone number for "
        "this destination"
    ),
    21607: Kind("The 'From' number must be a valid, SMS-capable inbound phone number"),
    21608: Kind(
        "The number {to} is unverified. Trial accounts cannot send messages to unverified numbers"
    ),
    21609: Kind("The StatusCallback URL is not a valid URL."),
    21610: Kind("Attempt to send to unsubscribed recipient"),
    21611: Kind("This 'From' number has exceeded the maximum number of queued messages"),
    21612: Kind("'To' phone number {to} is not currently reachable using the 'From' number"),
    21614: Kind("'To' number is not a valid mobile number: {to}"),
    21617: Kind("The concatenated message body exceeds the 1600 character limit"),
    21618: Kind("The message body cannot be sent"),
    21624: Kind("The ValidityPeriod is not valid"),
    21701: Kind("The Messaging Service does not exist"),
    21702: Kind("The Messaging Service Sid is invalid"),
    21703: Kind("The Messaging Service contains no phone numbers"),
    21704: Kind("The Messaging Service contains no suitable phone numbers"),
    21705: Kind("The Messaging Service Sid is invalid"),
    21708: Kind("Number belongs to another Messaging Service"),
    21709: Kind("The Messaging Service cannot use this number"),
    30610: Kind("Message not sent: it is quiet hours for {to}"),
    30640: Kind("Message not sent: {to} is blocked by the compliance toolkit"),
    90007: Kind("The message cannot be sent within its validity period"),
}
FAILURES: Mapping[int, Failure] = {
    # With a messaging service, Twilio may find only later what it tells other senders at once.
    21408: Failure("Permission to send an SMS has not been enabled for the region"),
    21610: Failure("Attempt to send to unsubscribed recipient"),
    30001: Failure("Queue overflow"),
    30002: Failure("Account suspended"),
    30003: Failure("Unreachable destination handset", UNDELIVERED),
    30004: Failure("Message blocked", UNDELIVERED),
    30005: Failure("Unknown destination handset", UNDELIVERED),
    30006: Failure("Landline or unreachable carrier", UNDELIVERED),
    30007: Failure("Message filtered", UNDELIVERED),
    30008: Failure("Unknown error", UNDELIVERED),
    30017: Failure("Carrier network congestion", UNDELIVERED),
    30018: Failure("Destination carrier requires sender ID pre-registration"),
    30019: Failure("Content size exceeds carrier limit", UNDELIVERED),
    30022: Failure("US A2P 10DLC - rate limits exceeded"),
    30023: Failure("US A2P 10DLC - daily message cap reached"),
    30024: Failure("Numeric sender ID not provisioned on carrier"),
    30027: Failure("US A2P 10DLC - T-Mobile daily message limit reached"),
    30032: Failure("Toll-free number has not been verified"),
    30033: Failure("US A2P 10DLC - campaign suspended"),
    30034: Failure("US A2P 10DLC - message from an unregistered number"),
    30035: Failure("US A2P 10DLC - message from a number that is pending"),
    30036: Failure("Validity period expired"),
    30410: Failure("Provider timeout error", UNDELIVERED),
    30450: Failure("Message delivery blocked: suspected pumping"),
}
