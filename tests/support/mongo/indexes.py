"""The required indexes, the indexes that serve them, and the service's other indexes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Key = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class RequiredIndex:
    """A required index, in the field names of the service."""

    collection: str
    purpose: str
    fields: str
    """The fields, such as ``user_id -created_at``; a minus sign means descending."""
    served_by: str | None = None
    unique: bool = False
    why: str | None = None
    """The reason if no index begins with these keys."""

    @property
    def keys(self) -> Key:
        return [
            (name.lstrip("-"), -1 if name.startswith("-") else 1) for name in self.fields.split()
        ]


NTF, DEV, ATT = "notifications", "devices", "delivery_attempts"
EVENTS, METRICS = "analytics_events", "metrics_aggregates"
OPEN_WORK = (
    "`due_at` is the earliest time at which an open delivery is due, and is missing when none is "
    "open: the index holds open work only."
)
SEARCHED = (
    "One index has all values that notifications are found by, each with a letter for its kind in "
    "`search_keys`, and then the creation."
)
ALL_STATUSES = "A query names all statuses, of which there are a dozen, and MongoDB merges them"

REQUIRED = (
    RequiredIndex(NTF, "user history, newest first", "user_id -created_at", "ntf_user_feed"),
    RequiredIndex(NTF, "one user's", "user_id", "ntf_user_feed"),
    RequiredIndex(
        NTF,
        "one user's by status",
        "user_id status",
        "ntf_user_feed",
        why=(
            "A user has few notifications: the status is compared in the feed's result, and the "
            "client, `is_active`, and `is_read` in its index."
        ),
    ),
    RequiredIndex(
        NTF,
        "one notification per user, entity, and type",
        "user_id entity_id",
        "ntf_once_per_entity_client",
        unique=True,
        why=(
            "A compound sparse index also holds documents that lack one of its fields, so this "
            "one is partial on `entity_id` and `user_id`. It includes `type`, because a "
            "reminder and a result are two notifications, `client_id`, because clients don't "
            "know each other's notifications, and `is_test`. It doesn't hold resends."
        ),
    ),
    RequiredIndex(NTF, "one entity's", "entity_id", "ntf_search", why=SEARCHED),
    RequiredIndex(
        NTF, "entity history, newest first", "entity_id -created_at", "ntf_search", why=SEARCHED
    ),
    RequiredIndex(NTF, "one type, newest first", "type -created_at", "ntf_type_created"),
    RequiredIndex(NTF, "one type", "type", "ntf_type_created"),
    RequiredIndex(NTF, "one channel", "delivery.channel", "ntf_delivery_status"),
    RequiredIndex(
        NTF,
        "newest first",
        "-created_at",
        "ntf_status_created",
        why=f"{ALL_STATUSES} in the order of time.",
    ),
    RequiredIndex(
        NTF,
        "oldest first",
        "created_at",
        "ntf_status_created",
        why="As newest first: an index is read from either end.",
    ),
    RequiredIndex(NTF, "one status", "status", "ntf_status_created"),
    RequiredIndex(
        NTF,
        "failed or pending deliveries of a channel, by last attempt",
        "delivery.status delivery.channel delivery.last_attempt_at",
        "ntf_delivery_status",
        why=(
            "The channel is first, so the index also serves a channel alone. The creation "
            "follows the status: lists are newest first, and the time of the last attempt would"
            " move the entry with each attempt."
        ),
    ),
    RequiredIndex(
        NTF, "sent or not, by scheduled time", "status scheduled_at", "ntf_status_scheduled"
    ),
    RequiredIndex(NTF, "pending and scheduled", "status scheduled_at", "ntf_status_scheduled"),
    RequiredIndex(
        NTF,
        "scheduled",
        "scheduled_at",
        "ntf_status_scheduled",
        why=f"{ALL_STATUSES} in the order of the schedule.",
    ),
    RequiredIndex(
        NTF,
        "retry queue: status and next retry",
        "status next_retry_at",
        "ntf_due",
        why=f"Each priority has a queue of its own. {OPEN_WORK}",
    ),
    RequiredIndex(NTF, "next retry", "next_retry_at", "ntf_due", why=OPEN_WORK),
    RequiredIndex(
        NTF,
        "send time",
        "sent_at",
        why="No query uses it: histories are by creation, and metrics come from attempts.",
    ),
    RequiredIndex(
        NTF,
        "active or deleted",
        "is_active",
        "ntf_search",
        why=(
            "Nearly all are active, which no index helps to find. Only deleted ones have a search "
            "key for it."
        ),
    ),
    RequiredIndex(
        NTF,
        "expiry",
        "expires_at",
        why="No query uses it: a delivery expires when it is due, by `ntf_due`.",
    ),
    RequiredIndex(
        NTF,
        "deleted by MongoDB after 90 days",
        "expires_at",
        "ntf_purge",
        why="Expiry and deletion are different times: the TTL is on `purge_at`.",
    ),
    RequiredIndex(
        NTF,
        "one request by its idempotency key",
        "idempotency_key",
        "ntf_search",
        why=SEARCHED,
    ),
    RequiredIndex(
        "idempotency_keys",
        "an idempotency key used once",
        "idempotency_key",
        "_id_",
        unique=True,
        why=(
            "The `_id` of a document in `idempotency_keys`: unique on every shard, and deleted "
            "after a day so that keys can be used again."
        ),
    ),
    RequiredIndex(DEV, "one user's devices", "user_id", "dev_user"),
    RequiredIndex(
        DEV,
        "a device by its token",
        "device_token",
        "_id_",
        unique=True,
        why="The `_id` is the token's SHA-256: unique on every shard.",
    ),
    RequiredIndex(DEV, "one platform", "platform", "dev_platform"),
    RequiredIndex(
        DEV,
        "last seen",
        "last_seen",
        "dev_last_seen",
        why="Most recently first; an index is read from either end.",
    ),
    RequiredIndex(
        ATT,
        "attempts of a notification, by device and number",
        "notification_id device_id attempt_number",
        "att_notification",
    ),
    RequiredIndex(
        ATT,
        "attempts of a notification, by status",
        "notification_id status",
        "att_notification",
        why=(
            "A notification has a handful: the status is compared in the index's result. An "
            "index with the status would move the entry with each attempt that ends."
        ),
    ),
    RequiredIndex(ATT, "attempts at a device", "device_id", "att_device"),
    RequiredIndex(
        ATT,
        "attempts by time",
        "attempted_at",
        "att_attempted",
        why="Newest first; an index is read from either end.",
    ),
    RequiredIndex(EVENTS, "events of a kind, by time", "event_type created_at", "evt_type_created"),
    RequiredIndex(EVENTS, "events of a user, by time", "user_id created_at", "evt_user_created"),
    RequiredIndex(
        EVENTS, "events of an entity, by kind", "entity_id event_type", "evt_entity_type"
    ),
    RequiredIndex(METRICS, "a metric by time", "metric_name timestamp", "met_name_time"),
    RequiredIndex(
        METRICS,
        "a user's metric by time",
        "metric_name dimensions.user_id timestamp",
        why=(
            "No metric has a user: a value for each minute and recipient would be as much data as "
            "the notifications, and would have to be erased with the recipient. "
            "`GET /notifications/stats?user_id=…` counts theirs by `ntf_user_feed`."
        ),
    ),
    RequiredIndex(
        METRICS,
        "a platform's metric by time",
        "metric_name dimensions.platform timestamp",
        "met_platform",
    ),
)
OTHER_INDEXES: Mapping[str, str] = {
    "ntf_client_created": "a client's list, newest first",
    "ntf_client_scheduled": "a client's scheduled notifications, by status and time",
    "ntf_search": (
        "notifications by address, external ID, entity, source, idempotency key, provider message "
        "ID, or digest, and deleted ones, newest first"
    ),
    "ntf_failed": "failures, newest first",
    "ntf_fair_queue": "due deliveries of a client, channel, and priority, oldest first",
    "ntf_inbox": "an inbox, newest first, and its unread count, covered by the index",
    "ntf_snoozed": "snoozed notifications of an inbox, the next to come back first",
    "ntf_snooze_due": "snoozed notifications whose time has come",
    "ntf_encrypted": "encrypted values to destroy when their time in the inbox ends",
    "ntf_broadcast": "a broadcast's notifications by status, counted by the index alone",
    "brc_created": "broadcasts, newest first",
    "brc_client_created": "a client's broadcasts, newest first",
    "brc_due": "broadcasts with work to do, oldest first",
    "brc_awaiting": "broadcasts that await an approval, newest first; only these are in it",
    "brc_overridden": "broadcasts sent without an approval; only these are in it",
    "brc_stopped": "broadcasts that were held, or expired undecided; only these are in it",
    "brc_purge": "deletes broadcasts 90 days after their end",
    "fil_client_created": "a client's files, newest first",
    "fil_client_digest": "a client's files with the same content",
    "fil_due": "files to read or check, oldest first",
    "fil_purge": "deletes files 90 days after their upload",
    "flp_file": "the parts of a file, to remove them",
    "flp_people": "the parts with rows of a person, for erasure",
    "flp_purge": "deletes the parts of files a week after the upload",
    "dig_open": "the open digest of a group, unique",
    "dig_group": "the digests of a group, newest first; the shard key",
    "dig_due": "digests to close, oldest first",
    "dig_opened": "digests, newest first",
    "dig_client": "a client's digests, newest first",
    "dig_user": "a recipient's digests, newest first",
    "dig_status": "digests by status, newest first",
    "dig_purge": "deletes digests 90 days after their end",
    "cun_purge": "deletes counters of countries a week after their own time",
    "dun_purge": "deletes counters of parts a day after their own",
    "lim_purge": "deletes counters of limits when their period ends",
    "lim_user": "one recipient's counters, for erasure",
    "clk_purge": "deletes test clocks a day after real time has caught up with them",
    "out_client": "a test outbox, newest first",
    "out_notification": "the messages of a test notification, to remove them with it",
    "out_purge": "deletes messages of test outboxes after seven days",
    "vis_seen": "deletes inbox visits after 400 days",
    "rev_expires": "deletes revocations when the token expires",
    "ois_expires": "deletes sessions by an OpenID provider 8 hours after the last check",
    "ois_subject": "a person's sessions, for logout by the provider",
    "ois_provider_session": "the sessions of one session of the provider, for its logout",
    "oil_expires": "deletes logout tokens that are too old to be accepted",
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
    "svw_owner": "the saved views of a member of staff, in the order of the menu",
    "svw_shared": "the shared views, in the order of the menu; only these are in it",
    "mut_until": "deletes mutes when they end",
    "idm_expires": "deletes idempotency records",
    "evt_expires": "deletes provider events",
    "evt_notification": "the receipts of one notification",
    "evt_provider": "a provider's newest receipts, which tell whether they are late",
    "sob_expires": "deletes soft bounces",
    "ear_expires": "deletes receipts of unknown messages",
    "req_client": "the requests of a client, newest first",
    "req_request": "requests by their request ID, newest first",
    "req_purge": "deletes requests of clients after `REQUEST_LOG_DAYS`",
    "whk_received": "the webhook log, newest first",
    "whk_search": "the webhook log by message or address, newest first",
    "log_object": "the audit log of an object, newest first",
    "log_name": "the same by the object's name",
    "log_direct": "the audit log without the parts of bulk operations, newest first",
    "log_actor": "changes by one staff user or client, newest first",
    "whk_purge": "deletes the webhook log after 30 days",
    "opn_created": "bulk operations, newest first",
    "opn_next": "bulk operations to continue",
    "opn_purge": "deletes bulk operations 400 days after their start, or 30 days if never started",
    "opr_outcome": "open rows of a bulk operation, and examples for its preview",
    "opr_purge": "deletes results of bulk operations after 30 days",
    "rcp_email": "recipients with an email address, by user ID",
    "rcp_phone": "recipients with a phone number, by user ID",
    "rcp_name": "recipients by words of the name, a full-text index",
    "rcp_name_words": "recipients by beginnings of the name's words",
    "sup_created": "suppressions, newest first",
    "sup_key": "suppressions of an address",
    "sup_kind": "suppressions by channel or reason, newest first",
    "sup_expires": "deletes temporary suppressions",
    "tpm_topic": "a topic's members, by user ID",
    "tpm_user": "a recipient's topics",
    "win_expires": "deletes WhatsApp service windows after 30 days",
    "wid_phone": "the other identifiers of a number, for erasure",
    "wid_expires": "deletes WhatsApp identifiers a year after they were last seen",
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
