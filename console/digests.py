"""Digests: the list, the page of one with its members, and the actions Send now and Cancel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId
from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.channels import Channel
from domain.digests import DigestOutcome, DigestStatus
from domain.time import utc_now
from notifications import queries
from notifications.actions import digests
from notifications.actions.actions import InvalidStateError
from notifications.documents.policies import DigestDocument
from notifications.models import Digest
from notifyproject.db.match import Match
from recipients.masking import mask_text

from .notifications.filters import CHANNEL_OPTIONS, type_options
from .texts.labels import CHANNELS, DIGEST_LABELS, OUTCOME_LABELS, delivery_state
from .widgets import columns, names, panels
from .widgets.actions import (
    ask,
    is_confirmed,
    not_found,
    parse_id,
    record_change,
    render_page,
    require_post,
)
from .widgets.filters import choice_filter, time_filter
from .widgets.formats import EMPTY, count_of, timestamp
from .widgets.keyset_list import KeysetChangeList
from .widgets.links import DIGEST, DIGESTS, NOTIFICATION, RECIPIENT
from .widgets.lists import ReadOnlyAdmin

END = "notifications.end_digest"
NEXT_ONE = "Messages that follow wait for a new digest."
TIMES = (
    ("Opened", "opened_at"),
    ("Closes", "closes_at"),
    ("Closed", "closed_at"),
    ("Deleted on", "purge_at"),
)
StatusFilter = choice_filter(
    "status",
    (
        (DigestStatus.OPEN.value, "Open"),
        (DigestStatus.CLOSING.value, "Closing"),
        (DigestStatus.CLOSED.value, "Closed"),
    ),
    condition=lambda value: {
        "status": {"$in": [DigestStatus.CLOSING.value, DigestStatus.SEALED.value]}
        if value == DigestStatus.CLOSING
        else value
    },
)
OpenedFilter = time_filter("opened", "opened_at")
ChannelFilter = choice_filter("channel", CHANNEL_OPTIONS, is_unindexed=True)
TypeFilter = choice_filter("type", type_options, is_unindexed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestAction:
    """An action of staff on an open digest."""

    name: str  # Segment in URLs
    button: str
    run: Callable[..., DigestDocument]
    question: str
    consequence: str
    success_message: str
    audit_message: str


ACTIONS = (
    DigestAction(
        name="close",
        button="Send now",
        run=digests.close,
        question="Send this digest now?",
        consequence="Sends the messages that wait for it as one, in a few seconds.",
        success_message="Closed. It is sent in a few seconds.",
        audit_message="Closed.",
    ),
    DigestAction(
        name="cancel",
        button="Cancel digest",
        run=digests.cancel,
        question="Cancel this digest?",
        consequence="Permanently cancels the deliveries that wait for it.",
        success_message="Cancelling its messages",
        audit_message="Cancelled.",
    ),
)


@admin.register(Digest)
class DigestAdmin(ReadOnlyAdmin):
    """The digests, newest first."""

    list_display = (
        "opened",
        "digest",
        "recipient",
        "channel_display",
        "members",
        "status_display",
        "closes",
        "carrier",
    )
    list_display_links = ("opened", "digest")
    list_filter = (StatusFilter, TypeFilter, ChannelFilter, OpenedFilter)
    search_fields = ("user_id",)
    search_help_text = "User ID or digest ID"
    ordering = ("-opened_at", "-id")
    changelist_class = KeysetChangeList
    list_fullwidth = True
    empty_title = "No digests"
    empty_text = "A type with a digest sends its messages to one recipient as one."
    opened = columns.time_column("Opened", "opened_at")
    closes = columns.time_column("Closes", "closes_at")
    channel_display = columns.label_column("Channel", "channel", CHANNELS)

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the digests of a recipient, or the one with an ID."""
        digest_id = parse_id(text)
        wanted = {"user_id": text} if digest_id is None else {"_id": digest_id}
        return queryset.filter(Match(wanted))

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the names of the types, and how many messages wait for open digests."""
        types = names.type_names({row.type for row in rows})
        ids = [row.pk for row in rows if row.status == DigestStatus.OPEN]
        counts = queries.count_waiting_members(ids) if ids else {}
        for row in rows:
            row.type_name = types[row.type]
            row.member_count = counts.get(row.pk, 0) if row.pk in ids else row.count

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs of the actions."""
        return [
            self.url(
                f"<path:object_id>/{action.name}/", self.action_view, action.name, action=action
            )
            for action in ACTIONS
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """Show one digest."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        document = _find(object_id)
        if document is None:
            return not_found(request, "Digest", DIGESTS)
        return render_page(
            self, request, "console/digests/page.html", **_context(request, document)
        )

    def action_view(
        self, request: HttpRequest, object_id: str, action: DigestAction
    ) -> HttpResponse:
        """Run an action on one digest after its confirmation; POST only."""
        allowed = self.has_view_permission(request) and request.user.has_perm(END)
        if refused := require_post(request, allowed=allowed):
            return refused
        document = _find(object_id)
        if document is None:
            return not_found(request, "Digest", DIGESTS)
        back = reverse(DIGEST, args=[document["_id"]])
        if not is_confirmed(request):
            return ask(
                self,
                request,
                question=action.question,
                consequences=(_summary(document), f"{action.consequence} {NEXT_ONE}"),
                button=action.button,
                back=back,
            )
        try:
            action.run(document["_id"], now=utc_now())
        except InvalidStateError as problem:
            messages.warning(request, f"No change: {problem}")
        else:
            name = f"{document['type']} {document['_id']}"
            record_change(request, Digest, document["_id"], action.audit_message, name=name)
            messages.success(request, action.success_message)
        return HttpResponseRedirect(back)

    @admin.display(description="Type")
    def digest(self, row: Any) -> SafeString | str:
        """Return the type and the test chip."""
        if row.is_test:
            return format_html("{} {}", row.type_name, columns.test_chip())
        return str(row.type_name)

    @admin.display(description="Recipient")
    def recipient(self, row: Any) -> SafeString | str:
        """Return a link to the recipient."""
        return _recipient(row.user_id)

    @admin.display(description="Messages")
    def members(self, row: Any) -> str:
        """Return how many messages wait for it or are part of it."""
        return EMPTY if row.member_count is None else f"{row.member_count:,}"

    @admin.display(description="State")
    def status_display(self, row: Any) -> SafeString:
        """Return the outcome of a closed digest, or the status, as a chip."""
        return _state(row.status, row.outcome)

    @admin.display(description="Sent as")
    def carrier(self, row: Any) -> SafeString | str:
        """Return a link to the notification that carries it."""
        return _notification(row.carrier_id)


def _find(object_id: str) -> DigestDocument | None:
    digest_id = parse_id(object_id)
    return queries.digest(digest_id) if digest_id else None


def _state(status: str, outcome: str | None) -> SafeString:
    if status == DigestStatus.CLOSED and outcome is not None:
        return columns.chip(*OUTCOME_LABELS[DigestOutcome(outcome)])
    return columns.chip(*DIGEST_LABELS[DigestStatus(status)])


def _recipient(user_id: str | None) -> SafeString | str:
    return columns.link(reverse(RECIPIENT, args=[quote(user_id)]), user_id) if user_id else EMPTY


def _notification(notification_id: ObjectId | None) -> SafeString | str:
    if notification_id is None:
        return EMPTY
    return columns.link(reverse(NOTIFICATION, args=[notification_id]), notification_id)


def _context(request: HttpRequest, document: DigestDocument) -> dict[str, Any]:
    type_name = names.type_names([document["type"]])[document["type"]]
    original = Digest(pk=document["_id"], type=type_name)
    original.page_title = names.page_title(
        f"{type_name} digest", user_id=document.get("user_id"), at=document["closes_at"]
    )
    is_open = document["status"] == DigestStatus.OPEN
    may_see_members = request.user.has_perm("notifications.view_notification")
    return {
        "title": original.page_title,
        "original": original,
        "document": document,
        "type_name": type_name,
        "state": _state(document["status"], document.get("outcome")),
        "test_chip": columns.test_chip() if document["is_test"] else "",
        "headline": _summary(document),
        "actions": ACTIONS if is_open and request.user.has_perm(END) else (),
        "may_see_members": may_see_members,
        "members": _members(document, now=utc_now()) if may_see_members else [],
        "most": queries.MAX_MEMBERS,
        "facts": _facts(document),
        "times": panels.times(document, TIMES),
        "audit": panels.audit_log(Digest, document["_id"]),
    }


def _summary(document: DigestDocument) -> SafeString | str:
    """Return one sentence on the state of a digest."""
    if document["status"] == DigestStatus.OPEN:
        waiting = queries.count_waiting_members([document["_id"]]).get(document["_id"], 0)
        closes = timestamp(document["closes_at"])
        return format_html("{} waiting; closes at {}", count_of(waiting, "message"), closes)
    if document.get("outcome") is None:
        return "Closing"
    count = count_of(document["count"], "message")
    text = {
        DigestOutcome.SENT: f"{count} sent as one",
        DigestOutcome.SEPARATE: f"{count} sent one by one",
        DigestOutcome.EMPTY: "No message was left at its end",
        DigestOutcome.CANCELLED: f"{count} cancelled",
    }[DigestOutcome(document["outcome"])]
    return f"{text}; {document['dropped']:,} not needed" if document["dropped"] else text


def _members(document: DigestDocument, *, now: datetime) -> list[dict[str, Any]]:
    """Return the deliveries that wait for a digest or are part of it, oldest first."""
    return [
        {
            "link": _notification(member["_id"]),
            "at": member["created_at"],
            "chip": columns.chip(*delivery_state(delivery, now=now)),
        }
        for member in queries.members_of_digest(document["_id"])
        for delivery in member["delivery"]
        if delivery.get("digest_id") == document["_id"]
    ]


def _facts(document: DigestDocument) -> list[tuple[str, SafeString | str]]:
    client_id, carrier_id = document["client_id"], document.get("carrier_id")
    facts = (
        ("ID", str(document["_id"])),
        ("Recipient", _recipient(document.get("user_id"))),
        ("Channel", CHANNELS[Channel(document["channel"])]),
        # A variable's value, which may be an address.
        ("Key", mask_text(document["key"]) if document.get("key") else None),
        ("Client", names.client_names([client_id])[client_id]),
        ("Sent as", _notification(carrier_id) if carrier_id else None),
        ("Template version", str(document.get("template_version") or "")),
        ("Fewest messages", str(document["min_items"])),
        ("Messages listed", f"up to {document['max_items']}"),
    )
    return [(label, value) for label, value in facts if value]
