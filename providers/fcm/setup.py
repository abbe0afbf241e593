"""A check of the project without a message."""

import json
from http import HTTPStatus
from urllib.parse import quote

from domain.time import utc_now
from notifyproject.platform import event_loop, service_account
from notifyproject.settings.variables import Environment

from ..setup_check import TIMEOUT, RejectedError, call, explained
from . import credentials
from .variables import Settings


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Get an access token, and let FCM validate a message. Raises CheckError."""
    values = Settings.of(environment)
    source = values.FCM_CREDENTIALS
    with explained("Google"):
        token = event_loop.run(credentials.fetch_token(source, clock=utc_now, timeout=timeout))
    project = values.FCM_PROJECT_ID or credentials.read_service_account(source).project_id
    url = f"{values.FCM_URL.rstrip('/')}/v1/projects/{quote(project)}/messages:send"
    message = {"validate_only": True, "message": {"topic": "set-up", "data": {"set-up": "1"}}}
    authorization = f"Bearer {token.value}"
    status = call("FCM", url, message, authorization=authorization, timeout=timeout)
    if status != HTTPStatus.OK:
        raise RejectedError(f"FCM responded with {status} for the project {project}.")


def complete(values: dict[str, str]) -> None:
    """Write the service account in one line, because containers don't have the file."""
    if not (source := values.get("FCM_CREDENTIALS")):
        return
    try:
        credentials.read_service_account(source)
    except credentials.InvalidCredentialsError as error:
        raise ValueError(f"FCM_CREDENTIALS: {error}") from error
    values["FCM_CREDENTIALS"] = json.dumps(service_account.read(source))
