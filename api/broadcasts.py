"""Broadcasts: create, list, pause, resume, cancel; submit, approve, reject, override."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from access import actors
from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.limits import Overflow
from domain.states import AudienceKind, BroadcastStatus, NotificationStatus, Priority
from domain.time import utc_now
from notifications.broadcasts import approvals, control, creation, preview, repository, review
from notifications.broadcasts.preview import BroadcastPreview
from notifications.broadcasts.repository import MAX_EXAMPLES, NEWEST_FIRST
from notifications.broadcasts.requests import BroadcastRequest, request_of
from notifications.catalog.plans import PlanRequest
from notifications.documents.broadcasts import BroadcastDocument
from notifications.intake.requests import Caller, ContentRequest
from notifications.models import Broadcast
from notifications.models.broadcasts import REASON_LENGTH
from notifications.validation import ALIASES, ChannelName, ProblemCollector
from notifyproject.platform import audit
from notifyproject.platform.audit import Unaudited

from .http import idempotency_header, paging
from .http.body import MAX_BYTES_BULK, read_request
from .http.fields import view_of
from .http.paths import found_or_404, object_id_or_404, object_id_parameter
from .http.problems import INVALID_STATE, VERSION_CONFLICT
from .http.rendering import Response
from .http.requests import ClientRequest
from .notifications.schemas import ChannelPreviewView, channel_preview_view
from .openapi.operations import operation

EXAMPLE_BROADCAST_ID = "6745e3f09b1d4c2a7f3e8b70"
EXAMPLE_FINGERPRINT = "9f" * 32


Fingerprint = Annotated[
    str,
    Meta(
        min_length=64,
        max_length=64,
        description="`approval.fingerprint` of the review.",
        examples=[EXAMPLE_FINGERPRINT],
    ),
]


class BroadcastAudienceView(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The audience. Exactly one field is set."""

    topic: Annotated[str | None, Meta(examples=["news"])] = None
    user_ids: Annotated[bool, Meta(description="Listed recipients; not repeated here.")] = False
    all: bool = False
    file: Annotated[str | None, Meta(examples=[EXAMPLE_BROADCAST_ID])] = None


class SkipReasonView(msgspec.Struct, kw_only=True, frozen=True):
    """Recipients who got no notification, for one reason."""

    code: Annotated[str, Meta(examples=["no_address", "opted_out", "suppressed"])]
    count: int
    examples: Annotated[
        list[str],
        Meta(description="The first 20 user ids, or numbers of a file's rows.", examples=[["ada"]]),
    ]


class ApprovalView(msgspec.Struct, kw_only=True, frozen=True):
    """What another person decides, or has decided, about a broadcast."""

    fingerprint: Annotated[
        str | None,
        Meta(
            description="Of all that would be sent; a decision names it. Null in a draft.",
            examples=[EXAMPLE_FINGERPRINT],
        ),
    ] = None
    template_version: Annotated[int, Meta(examples=[3])]
    """The version that is sent, whatever is published later."""
    requested_at: datetime | None = None
    expires_at: datetime | None = None
    decided_at: datetime | None = None
    overridden_at: datetime | None = None
    """When it was sent without another person's approval."""
    reason: str | None = None


class BroadcastView(msgspec.Struct, kw_only=True, frozen=True):
    """A broadcast and its progress."""

    id: Annotated[str, Meta(examples=[EXAMPLE_BROADCAST_ID])]
    status: Annotated[BroadcastStatus, Meta(examples=["running"])]
    name: Annotated[str | None, Meta(examples=["Outage of June 3"])] = None
    type: Annotated[str, Meta(examples=["marketing"])]
    priority: Annotated[Priority, Meta(examples=["normal"])]
    audience: BroadcastAudienceView
    audience_size: Annotated[
        int | None,
        Meta(description="Approximate size at creation; null: not counted.", examples=[12_200]),
    ]
    channels: list[ChannelName] | None = None
    plan: PlanRequest | None = None
    content: Annotated[
        ContentRequest, Meta(examples=[{"subject": "Spring", "body": "It is spring."}])
    ]
    data: Annotated[dict[str, Any], Meta(examples=[{}])]
    source: Annotated[str | None, Meta(examples=["newsletter"])] = None
    entity_id: str | None = None
    event_at: datetime | None = None
    ttl: int | None = None
    accepted: Annotated[int, Meta(description="Notifications created.", examples=[12_000])]
    skipped: Annotated[
        list[SkipReasonView],
        Meta(
            description="Recipients who opted out, are suppressed, have no address or device, or "
            "have been notified about the entity."
        ),
    ]
    rejected: Annotated[
        list[SkipReasonView],
        Meta(
            description="Recipients whose notification was invalid, by error code.", examples=[[]]
        ),
    ]
    withdrawn: Annotated[
        int, Meta(description="Notifications cancelled with the broadcast.", examples=[0])
    ]
    is_waiting: Annotated[bool, Meta(description="Throttled: the backlog is full.")]
    notifications: Annotated[
        dict[str, int] | None,
        Meta(
            description="Notifications by status; null in lists and if there are too many.",
            examples=[{"queued": 120, "sent": 4_800, "failed": 12}],
        ),
    ] = None
    failure_code: Annotated[
        str | None,
        Meta(description="expired, unknown_type, file_removed or stuck; see failure_reason."),
    ] = None
    failure_reason: str | None = None
    approval: ApprovalView | None = None
    scheduled_at: datetime | None = None
    spread: Annotated[int | None, Meta(description="Seconds.")] = None
    local_hour: int | None = None
    expires_at: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    updated_at: datetime
    request_id: str | None = None
    is_test: bool = False  # Created with a test key: sent to the sandbox


class LimitEffectView(msgspec.Struct, kw_only=True, frozen=True):
    """A limit that counts the broadcast, and the recipients of the sample beyond it."""

    name: Annotated[str, Meta(examples=["weekly_marketing"])]
    overflow: Annotated[Overflow, Meta(examples=["later"])]
    over_limit: Annotated[
        int,
        Meta(description="Recipients of the sample whose message would exceed it.", examples=[45]),
    ]
    estimate: Annotated[
        int | None,
        Meta(
            description="Recipients of the audience whose message would exceed it; null: the "
            "audience isn't counted, or is empty.",
            examples=[549],
        ),
    ]


class BroadcastPreviewView(msgspec.Struct, kw_only=True, frozen=True):
    """The effect that a broadcast would have now on a random sample of its audience."""

    audience_size: Annotated[
        int | None, Meta(description="Approximate; null: not counted.", examples=[12_200])
    ]
    sampled: Annotated[int, Meta(description="Recipients in the sample.", examples=[1_000])]
    accepted: Annotated[
        int, Meta(description="Recipients of the sample who would be notified.", examples=[961])
    ]
    skipped: Annotated[
        list[SkipReasonView],
        Meta(
            description="Recipients of the sample who opted out, are suppressed, or have no "
            "address or device.",
            examples=[[{"code": "opted_out", "count": 39, "examples": ["ada"]}]],
        ),
    ]
    rejected: Annotated[
        list[SkipReasonView],
        Meta(
            description="Recipients of the sample whose notification would be invalid.",
            examples=[[]],
        ),
    ]
    limits: list[LimitEffectView]
    needs_approval: Annotated[bool, Meta(examples=[False])]
    """Whether another person approves it before it's sent."""


class BroadcastReviewView(msgspec.Struct, kw_only=True, frozen=True):
    """What an approver sees: the broadcast, its effect, and its messages."""

    broadcast: BroadcastView
    preview: BroadcastPreviewView
    messages: list[ChannelPreviewView]
    """As a recipient with all addresses gets them, with the version that was fixed."""


class ApproveRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The approval of what was reviewed."""

    fingerprint: Fingerprint


class RefuseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision with its reason."""

    fingerprint: Fingerprint
    reason: Annotated[
        str, Meta(min_length=1, max_length=REASON_LENGTH, examples=["The date is wrong."])
    ]


class BroadcastList(paging.PageView[BroadcastView], kw_only=True, frozen=True):
    """A page of broadcasts. ``next`` and ``previous`` are values for the parameter ``cursor``."""


def broadcast_view(
    document: BroadcastDocument,
    *,
    shows_registry: bool,
    counts: Mapping[NotificationStatus, int] | None = None,
) -> BroadcastView:
    """Return a stored broadcast as the API shows it.

    Without ``shows_registry``, it names recipients of a list or rows of a file, which the client
    gave.
    """
    request = request_of(document)
    with_ids = shows_registry or document["audience"] in (AudienceKind.USER_IDS, AudienceKind.FILE)
    return view_of(
        BroadcastView,
        document,
        id=str(document["_id"]),
        audience=BroadcastAudienceView(
            topic=document.get("topic"),
            user_ids=document["audience"] == AudienceKind.USER_IDS,
            all=document["audience"] == AudienceKind.ALL,
            file=str(document["file_id"]) if "file_id" in document else None,
        ),
        channels=None
        if request.channels is None
        else [ALIASES.get(name, name) for name in request.channels],
        plan=request.plan,
        content=request.content,
        data=request.data,
        source=request.source,
        entity_id=request.entity_id,
        event_at=request.event_at,
        ttl=request.ttl,
        spread=document.get("spread_seconds"),
        audience_size=document.get("audience_size"),
        skipped=_reason_views(document["skipped"], with_ids=with_ids),
        rejected=_reason_views(document["rejected"], with_ids=with_ids),
        notifications=None if counts is None else {s.value: n for s, n in counts.items()},
    )


def _reason_views(
    stored: Mapping[str, Mapping[str, Any]], *, with_ids: bool
) -> list[SkipReasonView]:
    by_count = sorted(stored.items(), key=lambda skipped: (-skipped[1]["count"], skipped[0]))
    return [
        SkipReasonView(
            code=code, count=skipped["count"], examples=skipped["examples"] if with_ids else []
        )
        for code, skipped in by_count
    ]


def _counted(reasons: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    return {
        code: {"count": len(user_ids), "examples": list(user_ids[:MAX_EXAMPLES])}
        for code, user_ids in reasons.items()
    }


def _preview_view(found: BroadcastPreview, *, with_ids: bool) -> BroadcastPreviewView:
    return BroadcastPreviewView(
        audience_size=found.audience_size,
        sampled=found.sampled,
        accepted=found.page.accepted,
        skipped=_reason_views(_counted(found.page.skipped), with_ids=with_ids),
        rejected=_reason_views(_counted(found.page.rejected), with_ids=with_ids),
        limits=[
            LimitEffectView(
                name=effect.limit.name,
                overflow=effect.limit.overflow,
                over_limit=effect.recipients,
                estimate=found.estimate(effect.recipients),
            )
            for effect in found.limits
        ],
        needs_approval=found.needs_approval,
    )


READ, WRITE = Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE
LIST, AWAITING = "broadcasts", "awaiting"
ID = object_id_parameter("broadcast_id", example=EXAMPLE_BROADCAST_ID)
_control_operation = partial(
    operation,
    scope=WRITE,
    response=BroadcastView,
    problems=(INVALID_STATE,),
    parameters=(ID,),
    test_mode=SafeWrite.OWN,
)


@operation(
    scope=WRITE,
    request=BroadcastRequest,
    response=BroadcastView,
    status=202,
    max_bytes=MAX_BYTES_BULK,
    problems=(VERSION_CONFLICT,),
    parameters=(idempotency_header.parameter(required=True),),
    headers={202: ("Location",)},
    test_mode=SafeWrite.MARKED,
    unaudited=Unaudited.CREATES,
)
def create_broadcast(request: ClientRequest) -> Response:
    """Create a broadcast.

    Sends a notification to all recipients, to the members of a topic, to up to 10,000 listed
    recipients, or to the rows of a checked file. The audience is read in the background, 1,000
    recipients at a time; GET returns the progress. Each recipient gets one notification, with the
    broadcast's ID in broadcast_id. While the backlog is full, the broadcast is throttled. A type
    that is critical or has sensitive variables is rejected. If its type or the key wants another
    person's approval, its status is awaiting_approval, and nothing is sent before.
    """
    caller = replace(_caller(request), idempotency_key=idempotency_header.required_key(request))
    body = _read_broadcast(request, caller)
    created = creation.create(body, caller=caller, now=utc_now())
    view = broadcast_view(created.document, shows_registry=_shows_registry(request))
    return idempotency_header.created(
        request, view, new_id=view.id, is_replayed=created.is_replayed
    )


@operation(
    scope=WRITE,
    request=BroadcastRequest,
    response=BroadcastPreviewView,
    max_bytes=MAX_BYTES_BULK,
    test_mode=SafeWrite.NOTHING,
    unaudited=Unaudited.NOTHING,
)
def preview_broadcast(request: ClientRequest) -> Response:
    """Preview a broadcast.

    Validates it and prepares it for up to 1,000 random recipients of its audience, as if it were
    sent now: how many would be notified, skipped, or rejected, and how many of the messages would
    exceed a limit. Nothing is stored or sent. Recipients who have been notified about the entity
    aren't recognized.
    """
    caller = _caller(request)
    body = _read_broadcast(request, caller)
    found = preview.preview(body, caller=caller, now=utc_now())
    is_listed = bool(body.audience.user_ids) or body.audience.file is not None
    with_ids = _shows_registry(request) or is_listed
    return Response(_preview_view(found, with_ids=with_ids))


@operation(scope=READ, response=BroadcastList, parameters=paging.PARAMETERS)
def list_broadcasts(request: ClientRequest) -> Response:
    """List broadcasts, newest first."""
    page_request = paging.parse_page_request(request.query_params, list_name=LIST)
    page = repository.page(
        client_id=request.client.id, limit=page_request.limit, cursor=page_request.cursor
    )
    shows_registry = _shows_registry(request)
    results = [
        broadcast_view(broadcast, shows_registry=shows_registry) for broadcast in page.documents
    ]
    cursors = paging.page_links(page, list_name=LIST, order=NEWEST_FIRST)
    return Response(BroadcastList(results=results, **cursors))


@operation(scope=READ, response=BroadcastView, parameters=(ID,))
def get_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Get a broadcast. Includes its progress and its notifications by status."""
    document = _broadcast_or_404(request, broadcast_id)
    counts = repository.count_by_status(document["_id"])
    shows_registry = _shows_registry(request)
    return Response(broadcast_view(document, shows_registry=shows_registry, counts=counts))


@_control_operation()
def pause_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Pause a broadcast.

    No more notifications are created until it's resumed, apart from the batch in progress: up
    to 1,000. Notifications that were created are sent.
    """
    return _apply(request, broadcast_id, control.pause, done="Paused")


@_control_operation()
def resume_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Resume a broadcast. It continues after the last recipient processed."""
    return _apply(request, broadcast_id, control.resume, done="Resumed")


@_control_operation(status=202)
def cancel_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Cancel a broadcast.

    No more notifications are created, and those that haven't been sent are cancelled. A completed
    broadcast can be cancelled, too. The status is cancelling until all notifications have ended,
    then cancelled.
    """
    return _apply(request, broadcast_id, control.cancel, done="Cancelled", status=202)


@operation(
    scope=WRITE,
    request=BroadcastRequest,
    response=BroadcastView,
    max_bytes=MAX_BYTES_BULK,
    problems=(INVALID_STATE, VERSION_CONFLICT),
    parameters=(ID,),
    test_mode=SafeWrite.OWN,
)
def put_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Replace a broadcast that needs an approval, and hasn't begun.

    It becomes a draft, also if it was approved: submit it to ask for an approval again.
    """
    caller, now = _caller(request), utc_now()
    body = _read_broadcast(request, caller)
    stored = _broadcast_or_404(request, broadcast_id)
    new = creation.validate(body, caller=caller, now=now)
    new["_id"] = stored["_id"]
    changed = approvals.change(new, by=actors.client_actor(request.client.id), now=now)
    return _decided(request, changed, "Changed.")


@_control_operation(status=202)
def submit_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Ask for the approval of a draft, or of a broadcast that expired.

    The version of the type's template that is published now is fixed.
    """
    stored = _broadcast_or_404(request, broadcast_id)
    author = actors.client_actor(request.client.id)
    submitted = approvals.submit(stored["_id"], by=author, now=utc_now())
    return _decided(request, submitted, "Submitted for approval.", status=202)


@operation(scope=Scope.BROADCASTS_APPROVE, response=BroadcastList, parameters=paging.PARAMETERS)
def list_awaiting_broadcasts(request: ClientRequest) -> Response:
    """List the broadcasts of all clients that await an approval, newest first."""
    page_request = paging.parse_page_request(request.query_params, list_name=AWAITING)
    page = repository.awaiting_page(limit=page_request.limit, cursor=page_request.cursor)
    shows_registry = _shows_registry(request)
    results = [
        broadcast_view(broadcast, shows_registry=shows_registry) for broadcast in page.documents
    ]
    cursors = paging.page_links(page, list_name=AWAITING, order=NEWEST_FIRST)
    return Response(BroadcastList(results=results, **cursors))


@operation(scope=Scope.BROADCASTS_APPROVE, response=BroadcastReviewView, parameters=(ID,))
def review_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Get what an approver sees: what would go, to how many, and how it looks."""
    document = _awaiting_or_404(broadcast_id)
    shows_registry = _shows_registry(request)
    found = review.review(document, now=utc_now())
    with_ids = shows_registry or document["audience"] == AudienceKind.USER_IDS
    return Response(
        BroadcastReviewView(
            broadcast=broadcast_view(document, shows_registry=shows_registry),
            preview=_preview_view(found.effect, with_ids=with_ids),
            messages=[
                channel_preview_view(channel, is_time_hidden=False) for channel in found.messages
            ],
        )
    )


_decision_operation = partial(
    operation, response=BroadcastView, problems=(INVALID_STATE,), parameters=(ID,)
)


@_decision_operation(scope=Scope.BROADCASTS_APPROVE, request=ApproveRequest)
def approve_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Approve a broadcast that another client or person wrote. It's scheduled.

    Refused for each of its authors. `fingerprint` names what was reviewed: if anything has changed
    since, nothing is sent.
    """
    body = read_request(request, ApproveRequest)
    approved = approvals.approve(
        _awaiting_or_404(broadcast_id, is_decided=True)["_id"],
        fingerprint=body.fingerprint,
        by=actors.client_actor(request.client.id),
        now=utc_now(),
    )
    return _decided(request, approved, "Approved.")


@_decision_operation(scope=Scope.BROADCASTS_APPROVE, request=RefuseRequest)
def reject_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Reject a broadcast that another client or person wrote. Its authors may change it."""
    body = _read_refusal(request)
    rejected = approvals.reject(
        _awaiting_or_404(broadcast_id, is_decided=True)["_id"],
        fingerprint=body.fingerprint,
        reason=body.reason,
        by=actors.client_actor(request.client.id),
        now=utc_now(),
    )
    return _decided(request, rejected, "Rejected.")


@_decision_operation(scope=Scope.BROADCASTS_OVERRIDE, request=RefuseRequest)
def override_broadcast(request: ClientRequest, broadcast_id: str) -> Response:
    """Send a broadcast without another person's approval, in an emergency.

    The scope isn't part of `admin`. Operators are alerted, and the audit log has the reason.
    """
    body = _read_refusal(request)
    overridden = approvals.override(
        _awaiting_or_404(broadcast_id)["_id"],
        fingerprint=body.fingerprint,
        reason=body.reason,
        by=actors.client_actor(request.client.id),
        now=utc_now(),
    )
    return _decided(request, overridden, f"Sent without an approval: {body.reason}")


def _caller(request: ClientRequest) -> Caller:
    return Caller(
        client_id=request.client.id,
        request_id=request.request_id,
        is_test=request.client.is_test,
        may_read_recipients=_shows_registry(request),
        requires_approval=request.client.requires_approval,
    )


def _read_refusal(request: ClientRequest) -> RefuseRequest:
    body = read_request(request, RefuseRequest, check=_check_reason)
    _check_reason(body)
    return body


def _check_reason(body: RefuseRequest) -> None:
    problems = ProblemCollector()
    problems.check_one_line(body.reason, "/reason")
    if not body.reason.strip():
        problems.add("/reason", "blank", "Must not be blank.")
    problems.raise_if_any()


def _awaiting_or_404(broadcast_id: str, *, is_decided: bool = False) -> BroadcastDocument:
    """Return a broadcast of any client that awaits an approval, or had one decided."""
    document = repository.get(object_id_or_404(broadcast_id))
    is_known = document is not None and (
        document["status"] == BroadcastStatus.AWAITING_APPROVAL
        or (is_decided and "decided_at" in document.get("approval", {}))
    )
    return found_or_404(document if is_known else None)


def _decided(
    request: ClientRequest, document: BroadcastDocument, message: str, *, status: int = 200
) -> Response:
    audit.record_client_action(
        request.client, model=Broadcast, object_id=str(document["_id"]), message=message
    )
    view = broadcast_view(document, shows_registry=_shows_registry(request))
    return Response(view, status=status)


def _shows_registry(request: ClientRequest) -> bool:
    return request.client.has_scope(Scope.RECIPIENTS_READ)


def _read_broadcast(request: ClientRequest, caller: Caller) -> BroadcastRequest:
    check = partial(creation.validate, caller=caller, now=utc_now())
    return read_request(request, BroadcastRequest, limit=MAX_BYTES_BULK, check=check)


def _broadcast_or_404(request: ClientRequest, broadcast_id: str) -> BroadcastDocument:
    return found_or_404(repository.get(object_id_or_404(broadcast_id), client_id=request.client.id))


def _apply(
    request: ClientRequest,
    broadcast_id: str,
    change: Callable[..., BroadcastDocument],
    *,
    done: str,
    status: int = 200,
) -> Response:
    changed = change(_broadcast_or_404(request, broadcast_id)["_id"], now=utc_now())
    return _decided(request, changed, f"{done}.", status=status)
