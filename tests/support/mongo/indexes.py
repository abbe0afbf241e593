"""Required indexes, the indexes that serve them, and the indexes for our own reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Key = Sequence[tuple[str, int]]


@dataclass(frozen=True, kw_only=True)
class RequiredIndex:
    """A required index, in our field names."""

    collection: str
    purpose: str
    keys: Key
    served_by: str | None = None
    unique: bool = False
    why: str | None = None
    """Why no index begins with these keys."""


def _index(
    collection: str,
    purpose: str,
    keys: str,
    served_by: str | None = None,
    *,
    unique: bool = False,
    why: str | None = None,
) -> RequiredIndex:
    """Return an index on keys such as ``user_id -created_at``."""
    pairs = tuple((key.lstrip("-"), -1 if key.startswith("-") else 1) for key in keys.split())
    return RequiredIndex(
        collection=collection,
        purpose=purpose,
        keys=pairs,
        served_by=served_by,
        unique=unique,
        why=why,
    )


NTF, DEV, ATT = "notifications", "devices", "delivery_attempts"
EVENTS, METRICS = "analytics_events", "metrics_aggregates"
OPEN_WORK = (
    "`due_at` is the earliest time at which any open delivery must be looked at, and is missing "
    "when none is open: the index holds open work only."
)

REQUIRED = (
    _index(NTF, "user history, newest first", "user_id -created_at", "ntf_user_feed"),
    _index(NTF, "one user's", "user_id", "ntf_user_feed"),
    _index(
        NTF,
        "one user's by status",
        "user_id status",
        "ntf_user_feed",
        why=(
            "The user's own notifications are few: the status is compared in what the feed's "
            "index finds, newest first."
        ),
    ),
    _index(
        NTF,
        "one user told once about one entity",
        "user_id entity_id",
        "ntf_once_per_entity",
        unique=True,
        why=(
            "A compound sparse index still holds documents that lack one of its fields: ours is"
            " partial on `entity_id` and `user_id`. `type` is in it too: a reminder and a "
            "result are two things to tell. So is `is_test`: a test does not stand in the way "
            "of the real one. Resends are not in it."
        ),
    ),
    _index(NTF, "one entity's", "entity_id", "ntf_entity"),
    _index(NTF, "entity history, newest first", "entity_id -created_at", "ntf_entity"),
    _index(NTF, "one type, newest first", "type -created_at", "ntf_type_created"),
    _index(NTF, "one type", "type", "ntf_type_created"),
    _index(NTF, "one channel", "delivery.channel", "ntf_delivery_status"),
    _index(NTF, "newest first", "-created_at", "ntf_created"),
    _index(
        NTF, "oldest first", "created_at", "ntf_created", why="An index is read from either end."
    ),
    _index(NTF, "one status", "status", "ntf_status_created"),
    _index(
        NTF,
        "failed or pending deliveries of a channel, by last attempt",
        "delivery.status delivery.channel delivery.last_attempt_at",
        "ntf_delivery_status",
        why=(
            "The channel stands first and so serves a channel alone too. Behind the status "
            "stands the creation: lists are newest first, and the time of the last attempt "
            "would move in the index with every try."
        ),
    ),
    _index(NTF, "sent or not, by scheduled time", "status scheduled_at", "ntf_status_scheduled"),
    _index(NTF, "pending and scheduled", "status scheduled_at", "ntf_status_scheduled"),
    _index(NTF, "scheduled", "scheduled_at", "ntf_scheduled"),
    _index(
        NTF,
        "retry queue: status and next retry",
        "status next_retry_at",
        "ntf_due",
        why=f"Each priority has a queue of its own. {OPEN_WORK}",
    ),
    _index(NTF, "next retry", "next_retry_at", "ntf_due", why=OPEN_WORK),
    _index(
        NTF,
        "when it was sent",
        "sent_at",
        why="Nothing reads by it: histories are by creation, figures come from the attempts.",
    ),
    _index(
        NTF,
        "active or deleted",
        "is_active",
        "ntf_inactive",
        why=(
            "Nearly all are active, and no index helps to find nearly all: it holds the deleted"
            " ones only."
        ),
    ),
    _index(NTF, "when it may no longer be sent", "expires_at", "ntf_expires"),
    _index(
        NTF,
        "deleted by MongoDB after 90 days",
        "expires_at",
        "ntf_purge",
        why="Not to be sent any more and to be deleted are two times: the TTL is on `purge_at`.",
    ),
    _index(NTF, "one request by its idempotency key", "idempotency_key", "ntf_idempotency_key"),
    _index(
        "idempotency_keys",
        "an idempotency key used once",
        "idempotency_key",
        "_id_",
        unique=True,
        why=(
            "The id of a document in `idempotency_keys`: unique on every shard, and gone after "
            "a day so that keys may be used again."
        ),
    ),
    _index(DEV, "one user's devices", "user_id", "dev_user"),
    _index(DEV, "a device by its token", "device_token", "dev_token", unique=True),
    _index(DEV, "one platform", "platform", "dev_platform"),
    _index(
        DEV,
        "last seen",
        "last_seen",
        "dev_last_seen",
        why="Most recently first; an index is read from either end.",
    ),
    _index(
        ATT,
        "attempts of a notification, by device and number",
        "notification_id device_id attempt_number",
        "att_notification",
    ),
    _index(
        ATT,
        "attempts of a notification, by status",
        "notification_id status",
        "att_notification",
        why=(
            "A notification has a handful: the status is compared in what the index finds. One "
            "with the status would move with each attempt that ends."
        ),
    ),
    _index(ATT, "attempts at a device", "device_id", "att_device"),
    _index(
        ATT,
        "attempts by time",
        "attempted_at",
        "att_attempted",
        why="Newest first; an index is read from either end.",
    ),
    _index(EVENTS, "events of a kind, by time", "event_type created_at", "evt_type_created"),
    _index(EVENTS, "events of a user, by time", "user_id created_at", "evt_user_created"),
    _index(EVENTS, "events of an entity, by kind", "entity_id event_type", "evt_entity_type"),
    _index(METRICS, "a figure by time", "metric_name timestamp", "met_name_time"),
    _index(
        METRICS, "a user's figure by time", "metric_name dimensions.user_id timestamp", "met_user"
    ),
    _index(
        METRICS,
        "a platform's figure by time",
        "metric_name dimensions.platform timestamp",
        "met_platform",
    ),
)
OTHER_INDEXES: Mapping[str, str] = {
    "ntf_client_created": "a client's list, newest first",
    "ntf_category_created": "one category, newest first",
    "ntf_email": "search by mail address",
    "ntf_phone": "search by phone number",
    "ntf_external": "a caller's own id",
    "ntf_provider_message": "a provider's id of a message",
    "ntf_failed": "failures, newest first",
    "ntf_lane": "what is due of a client, channel and priority, the oldest first",
    "ntf_inbox": "an inbox, newest first, and how much of it is unread, from the index alone",
    "ntf_own_clock": "what waits for a time on a person's own clock",
    "ntf_sealed": "secrets whose time in an inbox is over",
    "ntf_broadcast": "a broadcast's notifications by status, counted from the index alone",
    "brc_created": "broadcasts, newest first",
    "brc_client_created": "a client's broadcasts, newest first",
    "brc_due": "broadcasts with something to do, the oldest first",
    "brc_purge": "broadcasts are deleted 90 days after they have ended",
    "vis_seen": "when somebody last looked at their inbox is forgotten after 400 days",
    "rev_expires": "revoked inbox tokens are forgotten once they have run out",
    "log_expires": "tries to sign in that failed are forgotten after a quarter of an hour",
    "ntf_updated": "what has changed, for the figures over time; what is old, for retention",
    "dev_inactive": "devices that were switched off for one reason, most recently seen first",
    "att_purge": "attempts are deleted with their notification",
    "evt_purge": "events for analysis are deleted after 30 days",
    "met_span": "all figures of a span",
    "met_purge": "figures of minutes are deleted after 4 days, those of hours after 100",
    "mdu_due": "minutes to be counted again, when it is time",
    "inc_open": "one open incident of a kind, unique",
    "inc_state": "incidents that go on or are over, newest first",
    "inc_opened": "incidents, newest first",
    "idm_expires": "idempotency keys are forgotten",
    "evt_expires": "providers' events are forgotten",
    "sus_expires": "addresses in doubt are forgotten",
    "ear_expires": "events about messages that never came to be known are forgotten",
    "whk_received": "the webhook log, newest first",
    "whk_purge": "the webhook log is deleted after 30 days",
    "opn_created": "bulk operations, newest first",
    "opn_next": "bulk operations that a worker is to go on with",
    "opn_purge": "bulk operations are forgotten: 400 days after their start, 30 if never started",
    "opr_outcome": "what is left to do of a bulk operation, and samples of its preview",
    "opr_purge": "the results of bulk operations are deleted after 30 days",
    "rcp_email": "a person by mail address",
    "rcp_phone": "a person by phone number",
    "sup_created": "suppressions, newest first",
    "sup_key": "why an address is held back",
    "sup_kind": "suppressions of a channel or for a reason, newest first",
    "sup_expires": "suppressions that were for a time end",
    "tpm_topic": "the members of a topic, in the order of their ids",
    "tpm_user": "the topics of a person",
    "cnv_expires": "when somebody last wrote on WhatsApp is forgotten after 30 days",
    "ntf_callback": "what an app is still to be told of, the oldest first",
    "cbm_client": "what an app was told, newest first",
    "cbm_client_status": "the same by status",
    "cbm_status": "messages to apps by status, newest first",
    "cbm_created": "messages to apps, newest first",
    "cbm_notification": "what was told of one notification",
    "cbm_due": "what an app is to be told next",
    "cbm_purge": "messages to apps are deleted after 30 days",
    "cli_key_prefix": "an API key by its prefix, unique",
}
