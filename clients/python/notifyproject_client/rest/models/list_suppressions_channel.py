from typing import Literal

ListSuppressionsChannel = Literal["email", "whatsapp"]

LIST_SUPPRESSIONS_CHANNEL_VALUES: set[ListSuppressionsChannel] = {
    "email",
    "whatsapp",
}


def check_list_suppressions_channel(value: str) -> ListSuppressionsChannel:
    if value in LIST_SUPPRESSIONS_CHANNEL_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_SUPPRESSIONS_CHANNEL_VALUES!r}"
    )
