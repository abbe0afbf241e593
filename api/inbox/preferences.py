"""Recipients' own preferences: which categories and types reach them, on which channels."""

from typing import Annotated

import msgspec
from msgspec import Meta

from access.clients.inbox_tokens import InboxUser
from domain.channels import Channel
from domain.states import Category
from domain.time import utc_now
from notifications.catalog import types
from notifications.catalog.types import TypeConfig
from notifications.staff_messages import STAFF_TYPE
from notifyproject.platform import audit
from recipients import registration
from recipients.documents import RecipientDocument
from recipients.models import Recipient

from ..http.body import read_json
from ..http.fields import QuietHours, TypeSlug
from ..http.paths import found_or_404
from ..http.rendering import Response
from ..http.requests import InboxRequest
from ..openapi.operations import operation
from ..recipients.preferences import PreferencesRequest, parse_preferences
from ..recipients.schemas import PreferenceView, preferences_view


class PreferenceChoice(msgspec.Struct, kw_only=True, frozen=True):
    """A type that a recipient can mute, whole or on a channel."""

    slug: TypeSlug
    name: Annotated[str, Meta(examples=["Payment confirmed"])]
    category: Annotated[Category, Meta(examples=["transactional"])]
    channels: list[Channel]
    is_locked: Annotated[bool, Meta(examples=[False])]
    """True: no preference applies, such as to a login code."""


class InboxPreferences(msgspec.Struct, kw_only=True, frozen=True):
    """A recipient's preferences, and the types that they can choose from."""

    preferences: dict[str, PreferenceView]  # By category or type; a type's overrides its category's
    quiet_hours: QuietHours | None = None
    types: list[PreferenceChoice]


@operation(scope=None, response=InboxPreferences)
def get_inbox_preferences(request: InboxRequest) -> Response:
    """Get the recipient's preferences, and what they can choose from."""
    return Response(_view(registration.get(request.inbox_user.user_id)))


@operation(
    scope=None,
    request=PreferencesRequest,
    response=InboxPreferences,
)
def put_inbox_preferences(request: InboxRequest) -> Response:
    """Change the recipient's preferences and quiet hours, for all clients.

    What the body doesn't name stays. A recipient who isn't registered is registered without an
    address.
    """
    changes = parse_preferences(read_json(request))
    stored = registration.set_preferences(
        user_id=request.inbox_user.user_id,
        changes=changes,
        is_new_allowed=True,
        now=utc_now(),
    )
    view = _view(found_or_404(stored))
    _record(request.inbox_user)
    return Response(view)


def _record(user: InboxUser) -> None:
    audit.record(
        by=user.client_id,
        model=Recipient,
        object_id=user.user_id,
        name=user.user_id,
        message="By the recipient: Preferences changed.",
    )


def _view(recipient: RecipientDocument | None) -> InboxPreferences:
    stored = preferences_view(recipient)
    return InboxPreferences(
        preferences=stored.preferences,
        quiet_hours=stored.quiet_hours,
        # Alerts go to operators, and no preference applies to them.
        types=[_choice(config) for config in types.active_types() if config.slug != STAFF_TYPE],
    )


def _choice(config: TypeConfig) -> PreferenceChoice:
    return PreferenceChoice(
        slug=config.slug,
        name=config.name,
        category=config.category,
        channels=list(config.channels),
        is_locked=config.is_locked,
    )
