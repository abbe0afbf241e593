from typing import Literal

GetNotificationStatsBy = Literal["channel", "status", "type"]

GET_NOTIFICATION_STATS_BY_VALUES: set[GetNotificationStatsBy] = {
    "channel",
    "status",
    "type",
}


def check_get_notification_stats_by(value: str) -> GetNotificationStatsBy:
    if value in GET_NOTIFICATION_STATS_BY_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {GET_NOTIFICATION_STATS_BY_VALUES!r}"
    )
