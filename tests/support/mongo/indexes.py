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


NTF, DEV, ATT = "notifications", "devices", "delivery_attempts"
EVENTS, METRICS = "analytics_events", "metrics_aggregates"
OPEN_WORK = (
    "`due_at` is the earliest time at which any open delivery must be looked at, and is missing "
    "when none is open: the index holds open work only."
)

REQUIRED = (
    # Whose.
    RequiredIndex(
        collection=NTF,
        purpose="user history, newest first",
        keys=(("user_id", 1), ("created_at", -1)),
        served_by="ntf_user_feed",
    ),
    RequiredIndex(
        collection=NTF, purpose="one user's", keys=(("user_id", 1),), served_by="ntf_user_feed"
    ),
    RequiredIndex(
        collection=NTF,
        purpose="one user's by status",
        keys=(("user_id", 1), ("status", 1)),
        served_by="ntf_user_feed",
        why=(
            "The user's own notifications are few: the status is compared in what the feed's "
            "index finds, newest first."
        ),
    ),
    # What about.
    RequiredIndex(
        collection=NTF,
        purpose="one user told once about one entity",
        keys=(("user_id", 1), ("entity_id", 1)),
        served_by="ntf_once_per_entity",
        unique=True,
        why=(
            "A compound sparse index still holds documents that lack one of its fields: ours is "
            "partial on `entity_id` and `user_id`. `type` is in it too: a reminder and a result "
            "are two things to tell. So is `is_test`: a test does not stand in the way of the "
            "real one. Resends are not in it."
        ),
    ),
    RequiredIndex(
        collection=NTF, purpose="one entity's", keys=(("entity_id", 1),), served_by="ntf_entity"
    ),
    RequiredIndex(
        collection=NTF,
        purpose="entity history, newest first",
        keys=(("entity_id", 1), ("created_at", -1)),
        served_by="ntf_entity",
    ),
    # What kind.
    RequiredIndex(
        collection=NTF,
        purpose="one type, newest first",
        keys=(("type", 1), ("created_at", -1)),
        served_by="ntf_type_created",
    ),
    RequiredIndex(
        collection=NTF, purpose="one type", keys=(("type", 1),), served_by="ntf_type_created"
    ),
    RequiredIndex(
        collection=NTF,
        purpose="one channel",
        keys=(("delivery.channel", 1),),
        served_by="ntf_delivery_status",
    ),
    RequiredIndex(
        collection=NTF, purpose="newest first", keys=(("created_at", -1),), served_by="ntf_created"
    ),
    RequiredIndex(
        collection=NTF,
        purpose="oldest first",
        keys=(("created_at", 1),),
        served_by="ntf_created",
        why="An index is read from either end.",
    ),
    # Where it stands.
    RequiredIndex(
        collection=NTF, purpose="one status", keys=(("status", 1),), served_by="ntf_status_created"
    ),
    RequiredIndex(
        collection=NTF,
        purpose="failed or pending deliveries of a channel, by last attempt",
        keys=(("delivery.status", 1), ("delivery.channel", 1), ("delivery.last_attempt_at", 1)),
        served_by="ntf_delivery_status",
        why=(
            "The channel stands first and so serves a channel alone too. Behind the status stands "
            "the creation: lists are newest first, and the time of the last attempt would move in "
            "the index with every try."
        ),
    ),
    RequiredIndex(
        collection=NTF,
        purpose="sent or not, by scheduled time",
        keys=(("status", 1), ("scheduled_at", 1)),
        served_by="ntf_status_scheduled",
    ),
    RequiredIndex(
        collection=NTF,
        purpose="pending and scheduled",
        keys=(("status", 1), ("scheduled_at", 1)),
        served_by="ntf_status_scheduled",
    ),
    RequiredIndex(
        collection=NTF, purpose="scheduled", keys=(("scheduled_at", 1),), served_by="ntf_scheduled"
    ),
    RequiredIndex(
        collection=NTF,
        purpose="retry queue: status and next retry",
        keys=(("status", 1), ("next_retry_at", 1)),
        served_by="ntf_due",
        why=f"Each priority has a queue of its own. {OPEN_WORK}",
    ),
    RequiredIndex(
        collection=NTF,
        purpose="next retry",
        keys=(("next_retry_at", 1),),
        served_by="ntf_due",
        why=OPEN_WORK,
    ),
    RequiredIndex(
        collection=NTF,
        purpose="when it was sent",
        keys=(("sent_at", 1),),
        why="Nothing reads by it: histories are by creation, figures come from the attempts.",
    ),
    RequiredIndex(
        collection=NTF,
        purpose="active or deleted",
        keys=(("is_active", 1),),
        served_by="ntf_inactive",
        why=(
            "Nearly all are active, and no index helps to find nearly all: it holds the deleted "
            "ones only."
        ),
    ),
    # When it ends.
    RequiredIndex(
        collection=NTF,
        purpose="when it may no longer be sent",
        keys=(("expires_at", 1),),
        served_by="ntf_expires",
    ),
    RequiredIndex(
        collection=NTF,
        purpose="deleted by MongoDB after 90 days",
        keys=(("expires_at", 1),),
        served_by="ntf_purge",
        why="Not to be sent any more and to be deleted are two times: the TTL is on `purge_at`.",
    ),
    RequiredIndex(
        collection=NTF,
        purpose="one request by its idempotency key",
        keys=(("idempotency_key", 1),),
        served_by="ntf_idempotency_key",
    ),
    RequiredIndex(
        collection="idempotency_keys",
        purpose="an idempotency key used once",
        keys=(("idempotency_key", 1),),
        served_by="_id_",
        unique=True,
        why=(
            "The id of a document in `idempotency_keys`: unique on every shard, and gone after a "
            "day so that keys may be used again."
        ),
    ),
    # Devices.
    RequiredIndex(
        collection=DEV, purpose="one user's devices", keys=(("user_id", 1),), served_by="dev_user"
    ),
    RequiredIndex(
        collection=DEV,
        purpose="a device by its token",
        keys=(("device_token", 1),),
        served_by="dev_token",
        unique=True,
    ),
    RequiredIndex(
        collection=DEV, purpose="one platform", keys=(("platform", 1),), served_by="dev_platform"
    ),
    RequiredIndex(
        collection=DEV,
        purpose="last seen",
        keys=(("last_seen", 1),),
        served_by="dev_last_seen",
        why="Most recently first; an index is read from either end.",
    ),
    # Attempts.
    RequiredIndex(
        collection=ATT,
        purpose="attempts of a notification, by device and number",
        keys=(("notification_id", 1), ("device_id", 1), ("attempt_number", 1)),
        served_by="att_notification",
    ),
    RequiredIndex(
        collection=ATT,
        purpose="attempts of a notification, by status",
        keys=(("notification_id", 1), ("status", 1)),
        served_by="att_notification",
        why=(
            "A notification has a handful: the status is compared in what the index finds. One "
            "with the status would move with each attempt that ends."
        ),
    ),
    RequiredIndex(
        collection=ATT,
        purpose="attempts at a device",
        keys=(("device_id", 1),),
        served_by="att_device",
    ),
    RequiredIndex(
        collection=ATT,
        purpose="attempts by time",
        keys=(("attempted_at", 1),),
        served_by="att_attempted",
        why="Newest first; an index is read from either end.",
    ),
    # Events and figures.
    RequiredIndex(
        collection=EVENTS,
        purpose="events of a kind, by time",
        keys=(("event_type", 1), ("created_at", 1)),
        served_by="evt_type_created",
    ),
    RequiredIndex(
        collection=EVENTS,
        purpose="events of a user, by time",
        keys=(("user_id", 1), ("created_at", 1)),
        served_by="evt_user_created",
    ),
    RequiredIndex(
        collection=EVENTS,
        purpose="events of an entity, by kind",
        keys=(("entity_id", 1), ("event_type", 1)),
        served_by="evt_entity_type",
    ),
    RequiredIndex(
        collection=METRICS,
        purpose="a figure by time",
        keys=(("metric_name", 1), ("timestamp", 1)),
        served_by="met_name_time",
    ),
    RequiredIndex(
        collection=METRICS,
        purpose="a user's figure by time",
        keys=(("metric_name", 1), ("dimensions.user_id", 1), ("timestamp", 1)),
        served_by="met_user",
    ),
    RequiredIndex(
        collection=METRICS,
        purpose="a platform's figure by time",
        keys=(("metric_name", 1), ("dimensions.platform", 1), ("timestamp", 1)),
        served_by="met_platform",
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
