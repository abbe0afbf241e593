"""The indexes that the requirements name, what serves each, and those that our own reads need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Key = Sequence[tuple[str, int]]


@dataclass(frozen=True, kw_only=True)
class RequiredIndex:
    """One index that was asked for, in our names."""

    collection: str
    purpose: str
    keys: Key
    served_by: str | None = None
    unique: bool = False
    why: str | None = None
    """Why it is served in another way than by an index that begins with these keys."""


NTF, DEV, ATT = "notifications", "devices", "delivery_attempts"
EVENTS, METRICS = "analytics_events", "metrics_aggregates"
OPEN_WORK = (
    "`due_at` is the earliest time at which an open delivery is due, and is missing when none is "
    "open: the index holds open work only."
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
        why=("A user has few notifications: the status is compared in the feed's index."),
    ),
    # What about.
    RequiredIndex(
        collection=NTF,
        purpose="one notification per user, entity, and type",
        keys=(("user_id", 1), ("entity_id", 1)),
        served_by="ntf_once_per_entity",
        unique=True,
        why=(
            "A compound sparse index also holds documents that lack one of its fields, so this "
            "one is partial on `entity_id` and `user_id`. It includes `type`, because a reminder "
            "and a result are two notifications, and `is_test`. It doesn't hold resends."
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
            "The channel is first, so the index also serves a channel alone. The creation follows "
            "the status: lists are newest first, and the time of the last attempt would move the "
            "entry with each attempt."
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
        purpose="send time",
        keys=(("sent_at", 1),),
        why="No query uses it: histories are by creation, and metrics come from attempts.",
    ),
    RequiredIndex(
        collection=NTF,
        purpose="active or deleted",
        keys=(("is_active", 1),),
        served_by="ntf_inactive",
        why=(
            "Nearly all are active, which no index helps to find: this one holds only deleted ones."
        ),
    ),
    # When it ends.
    RequiredIndex(
        collection=NTF,
        purpose="expiry",
        keys=(("expires_at", 1),),
        served_by="ntf_expires",
    ),
    RequiredIndex(
        collection=NTF,
        purpose="deleted by MongoDB after 90 days",
        keys=(("expires_at", 1),),
        served_by="ntf_purge",
        why="Expiry and deletion are different times: the TTL is on `purge_at`.",
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
            "The `_id` of a document in `idempotency_keys`: unique on every shard, and deleted "
            "after a day so that keys can be used again."
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
            "A notification has a handful: the status is compared in the index's result. An index "
            "with the status would move the entry with each attempt that ends."
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
        purpose="a metric by time",
        keys=(("metric_name", 1), ("timestamp", 1)),
        served_by="met_name_time",
    ),
    RequiredIndex(
        collection=METRICS,
        purpose="a user's metric by time",
        keys=(("metric_name", 1), ("dimensions.user_id", 1), ("timestamp", 1)),
        served_by="met_user",
    ),
    RequiredIndex(
        collection=METRICS,
        purpose="a platform's metric by time",
        keys=(("metric_name", 1), ("dimensions.platform", 1), ("timestamp", 1)),
        served_by="met_platform",
    ),
)

OTHER_INDEXES: Mapping[str, str] = {
    "ntf_client_created": "a client's list, newest first",
    "ntf_category_created": "one category, newest first",
    "ntf_email": "search by email address",
    "ntf_phone": "search by phone number",
    "ntf_external": "external ID",
    "ntf_provider_message": "provider message ID",
    "ntf_failed": "failures, newest first",
    "ntf_lane": "due deliveries of a client, channel, and priority, oldest first",
    "ntf_inbox": "an inbox, newest first, and its unread count, covered by the index",
    "ntf_own_clock": "notifications scheduled on the recipient's clock",
    "ntf_sealed": "encrypted values to destroy when their time in the inbox ends",
    "ntf_broadcast": "a broadcast's notifications by status, counted by the index alone",
    "brc_created": "broadcasts, newest first",
    "brc_client_created": "a client's broadcasts, newest first",
    "brc_due": "broadcasts with work to do, oldest first",
    "brc_purge": "deletes broadcasts 90 days after their end",
    "vis_seen": "deletes inbox visits after 400 days",
    "rev_expires": "deletes revocations when the token expires",
    "log_expires": "deletes failed sign-ins after 15 minutes",
    "ntf_updated": "changed notifications, for metrics; old content, for retention",
    "dev_inactive": "disabled devices by reason, most recently seen first",
    "att_purge": "deletes attempts with their notification",
    "evt_purge": "deletes analytics events after 30 days",
    "met_span": "all metrics of an interval",
    "met_purge": "deletes metrics per minute after 4 days, per hour after 100",
    "mdu_due": "minutes to recount, when due",
    "inc_open": "one open incident per key, unique",
    "inc_state": "open or resolved incidents, newest first",
    "inc_opened": "incidents, newest first",
    "idm_expires": "deletes idempotency records",
    "evt_expires": "deletes provider events",
    "sus_expires": "deletes soft bounces",
    "ear_expires": "deletes receipts of unknown messages",
    "whk_received": "the webhook log, newest first",
    "whk_purge": "deletes the webhook log after 30 days",
    "opn_created": "bulk operations, newest first",
    "opn_next": "bulk operations to continue",
    "opn_purge": "deletes bulk operations 400 days after their start, or 30 days if never started",
    "opr_outcome": "open rows of a bulk operation, and examples for its preview",
    "opr_purge": "deletes results of bulk operations after 30 days",
    "rcp_email": "a recipient by email address",
    "rcp_phone": "a recipient by phone number",
    "sup_created": "suppressions, newest first",
    "sup_key": "suppressions of an address",
    "sup_kind": "suppressions by channel or reason, newest first",
    "sup_expires": "deletes temporary suppressions",
    "tpm_topic": "a topic's members, by user ID",
    "tpm_user": "a recipient's topics",
    "cnv_expires": "deletes WhatsApp service windows after 30 days",
    "ntf_callback": "notifications with callback events to derive, oldest first",
    "cbm_client": "a client's callback events, newest first",
    "cbm_client_status": "the same by status",
    "cbm_status": "callback events by status, newest first",
    "cbm_created": "callback events, newest first",
    "cbm_notification": "callback events of a notification",
    "cbm_due": "a client's next callback events",
    "cbm_purge": "deletes callback events after 30 days",
    "cli_key_prefix": "an API key by its prefix, unique",
}
