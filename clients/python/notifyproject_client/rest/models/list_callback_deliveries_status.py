from typing import Literal

ListCallbackDeliveriesStatus = Literal["delivered", "failed", "pending"]

LIST_CALLBACK_DELIVERIES_STATUS_VALUES: set[ListCallbackDeliveriesStatus] = {
    "delivered",
    "failed",
    "pending",
}


def check_list_callback_deliveries_status(value: str) -> ListCallbackDeliveriesStatus:
    if value in LIST_CALLBACK_DELIVERIES_STATUS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_CALLBACK_DELIVERIES_STATUS_VALUES!r}"
    )
