"""The indexes that were asked for, and what serves each."""

from collections.abc import Sequence
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
    "`due_at` is the earliest time at which any open delivery must be looked at, and is missing "
    "when none is open: the index holds open work only."
)

ASKED = (
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
