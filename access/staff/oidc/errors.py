"""Failures of OpenID Connect: the provider is unavailable, or a sign-in is refused."""

from enum import StrEnum


class Refusal(StrEnum):
    """The reason for which a sign-in is refused, or a session ended. Logs contain the value."""

    STATE = "state"
    """No sign-in of this browser has this state: it expired, was used, or is forged."""
    DENIED = "denied"
    """The provider returned an error in place of a code."""
    CODE = "code"
    """The provider rejected the code or the refresh token: used, expired, or revoked."""
    MALFORMED = "malformed"
    SIGNATURE = "signature"
    ISSUER = "issuer"
    AUDIENCE = "audience"
    NONCE = "nonce"
    EXPIRED = "expired"
    SUBJECT = "subject"
    """The provider authenticated another person than this session's."""
    AUTH_TIME = "auth_time"
    """The person last authenticated before they were asked to, or the provider doesn't say when."""
    NO_GROUP = "no_group"
    ROLE_MISSING = "role_missing"
    """A group is mapped to a role that isn't stored."""
    UNCHECKABLE = "uncheckable"
    """There is neither a refresh token nor a groups claim in userinfo to check groups with."""
    INACTIVE = "inactive"
    PROVIDER_LOGOUT = "provider_logout"
    UNREACHABLE = "unreachable"
    """The provider didn't confirm the groups for too long."""
    LOCAL = "local"
    """A local account that isn't a superuser, while sign-in by the provider is on."""


class RefusedError(Exception):
    """A sign-in or session is refused."""

    def __init__(self, reason: Refusal, detail: str = "") -> None:
        super().__init__(detail or reason.value)
        self.reason = reason
        self.detail = detail
        """For the log: no token, name, or address."""


class UnavailableError(Exception):
    """The provider doesn't respond, or not with what the protocol defines."""
