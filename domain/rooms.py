"""Rooms: places of a team, such as a channel of Slack, to which messages are posted. Pure.

A room's *target* is where it is: a URL that is a credential, or the ID of a channel.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from urllib.parse import parse_qs, urlsplit

DEFAULT_GAP = timedelta(seconds=1)
MAX_GAP = timedelta(minutes=10)
_SLACK_PATH = re.compile(r"/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9_-]+", re.ASCII)
_SLACK_CHANNEL = re.compile(r"[CGD][A-Z0-9]{6,20}", re.ASCII)
_DISCORD_PATH = re.compile(r"/api/(?:v\d{1,2}/)?webhooks/\d{17,20}/[A-Za-z0-9_-]+", re.ASCII)
_DISCORD_HOSTS = frozenset({"discord.com", "discordapp.com"})
_WORKFLOW_HOSTS = (".logic.azure.com", ".environment.api.powerplatform.com")
_RETIRED_HOSTS = (".webhook.office.com", "outlook.office.com", "outlook.office365.com")
RETIRED = (
    "Microsoft has retired Office 365 connectors. Create a workflow in Teams, “Post to a channel "
    "when a webhook request is received”, and use its URL."
)
MASK = "…"
_HTTPS_PORT = 443


class RoomKind(StrEnum):
    """What a room is, and so its provider."""

    SLACK_WEBHOOK = "slack_webhook"
    SLACK_BOT = "slack_bot"
    TEAMS = "teams"
    DISCORD = "discord"
    WEBHOOK = "webhook"


KINDS: frozenset[str] = frozenset(RoomKind)
UNKNOWN_KIND = "This version has no kind of room `{}`."


class InvalidTargetError(ValueError):
    """A target that a room of its kind can't have. The message doesn't repeat it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomTarget:
    """Where a room is."""

    address: str = field(repr=False)
    """A URL, or the ID of a channel."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Secrets that sign messages, the newest first."""


def check_target(kind: str, text: str) -> str:
    """Return a target without blanks at its ends. Raises InvalidTargetError.

    The URL of a webhook is that of any receiver; :mod:`notifyproject.platform.endpoints` checks it.
    """
    if kind not in KINDS:
        raise InvalidTargetError(UNKNOWN_KIND.format(kind))
    target = text.strip()
    if check := _CHECKS.get(kind):
        check(target)
    return target


def mask_target(kind: str, target: str) -> str:
    """Return what of a target may be shown: the host, or the whole ID of a channel."""
    if kind == RoomKind.SLACK_BOT:
        return target
    return f"{_host(target)}/{MASK}"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _https(url: str) -> tuple[str, str]:
    """Return host and path of a URL. Raises InvalidTargetError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = None, None
    if (
        parts is None
        or parts.scheme != "https"
        or "@" in parts.netloc
        or not parts.hostname
        or not url.isprintable()
        or " " in url
        or "#" in url
    ):
        raise InvalidTargetError("Expected a URL that begins with https://, without a user.")
    if port not in (None, _HTTPS_PORT):
        raise InvalidTargetError("Expected a URL without a port other than 443.")
    return parts.hostname, parts.path


def _check_slack_webhook(url: str) -> None:
    host, path = _https(url)
    if host != "hooks.slack.com" or not _SLACK_PATH.fullmatch(path):
        raise InvalidTargetError("Expected https://hooks.slack.com/services/T…/B…/….")


def _check_slack_channel(text: str) -> None:
    if not _SLACK_CHANNEL.fullmatch(text):
        raise InvalidTargetError("Expected the ID of a channel, such as C024BE91L, not its name.")


def _check_teams(url: str) -> None:
    host, path = _https(url)
    if host.endswith(_RETIRED_HOSTS):
        raise InvalidTargetError(RETIRED)
    if not host.endswith(_WORKFLOW_HOSTS) or "/workflows/" not in path:
        expected = "Expected the URL of a workflow, at logic.azure.com or api.powerplatform.com."
        raise InvalidTargetError(expected)
    if not parse_qs(urlsplit(url).query).get("sig"):
        raise InvalidTargetError("The URL lacks its signature, sig=…: copy the whole of it.")


def _check_discord(url: str) -> None:
    host, path = _https(url)
    if host not in _DISCORD_HOSTS or not _DISCORD_PATH.fullmatch(path):
        raise InvalidTargetError("Expected https://discord.com/api/webhooks/…/….")


_CHECKS: Mapping[str, Callable[[str], None]] = {
    RoomKind.SLACK_WEBHOOK: _check_slack_webhook,
    RoomKind.SLACK_BOT: _check_slack_channel,
    RoomKind.TEAMS: _check_teams,
    RoomKind.DISCORD: _check_discord,
}
