"""Texts about a file: its state, what it is, its columns, and the sentences about its rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.channels import Channel
from domain.states import Duplicates, FileStatus
from domain.tables.table import TableFormat
from notifications.catalog.texts import total_price
from notifications.documents.files import AudienceFileDocument, MessagesTotal, RowProblem
from notifications.files.checking import LOST_SIGN
from notifications.files.columns import DATA, IGNORED, TypeData
from notifications.files.parts import Head

from ..texts.labels import CHANNELS, code_label
from ..texts.wait_reasons import Label
from ..widgets.prices import parts_and_price

F = FileStatus
STATES: Mapping[FileStatus, Label] = {
    F.UPLOADING: ("Upload stopped", "warning"),
    F.READING: ("Reading", "info"),
    F.UNMAPPED: ("Choose columns", "warning"),
    F.CHECKING: ("Checking", "info"),
    F.CHECKED: ("Checked", "success"),
    F.REFUSED: ("Can't be read", "danger"),
    F.REMOVED: ("Removed", "calm"),
}
SENT: Label = ("Sent", "success")
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
DUPLICATES = {
    Duplicates.REFUSE: "The others are errors",
    Duplicates.FIRST: "Send the first",
    Duplicates.LAST: "Send the last",
}
FIELDS = {
    "user_id": "User ID",
    "email": "Email address",
    "phone": "Phone number",
    "name": "Name",
    "locale": "Language",
    "timezone": "Time zone",
}
MAX_SHOWN = 50
CHOOSE_COUNTRY = (
    " Spreadsheets remove the + of phone numbers, and zeros before them: choose the country, "
    "below the columns."
)


def file_state(document: AudienceFileDocument) -> Label:
    """Return the label of a file's state."""
    return SENT if "sealed_at" in document else STATES[FileStatus(document["status"])]


def kind_of(document: AudienceFileDocument, head: Head | None) -> str:
    """Return what was detected: the format, and the encoding and separator or the sheet."""
    if document.get("format") == TableFormat.XLSX:
        sheet = head.sheet if head is not None else None
        return f"XLSX, sheet “{sheet}”" if sheet else "XLSX"
    if (charset := document.get("charset")) is None:
        return ""
    separator = SEPARATORS.get(document.get("separator", ""), "another character")
    return f"Text in {charset}, separated by {separator}"


def target_choices(
    data: TypeData, header: str, *, chosen: str
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what a column can be, in groups."""
    required = data.required
    known = [
        (f"{DATA}{name}", _title(name, one.schema) + (", required" if name in required else ""))
        for name, one in data.properties.items()
    ]
    given = [chosen, f"{DATA}{header}" if data.is_open and header.isidentifier() else IGNORED]
    others = {target for target in given if target.startswith(DATA)} - dict(known).keys()
    known += [(target, target_label(target)) for target in sorted(others)]
    groups = [("", [(IGNORED, "Ignored")]), ("Recipient", list(FIELDS.items()))]
    return [*groups, ("Message", known)] if known else groups


def target_label(target: str) -> str:
    """Return what a column is, in words."""
    return FIELDS.get(target) or code_label(target.removeprefix(DATA))


def _title(name: str, schema: Mapping[str, Any]) -> str:
    return str(schema.get("title") or code_label(name))


def messages_by_channel(
    document: AudienceFileDocument, *, is_priced: bool
) -> list[tuple[str, str]]:
    """Return how many messages go by each channel, with the price of texts if it is known."""
    return [
        (f"By {CHANNELS[Channel(name)]}", _count(total, is_priced=is_priced))
        for name, total in document["messages"].items()
    ]


def _count(total: MessagesTotal, *, is_priced: bool) -> str:
    count = f"{total['messages']:,}"
    # Only texts have parts.
    if not is_priced or not total["units"]:
        return count
    return f"{count} with {parts_and_price(total_price(total['units']))}"


def sentences(
    found: Sequence[RowProblem], document: AudienceFileDocument, head: Head | None
) -> list[dict[str, Any]]:
    """Return sentences about rows, those of most rows first.

    Without a head, a column is called what it is, and not what the file calls it.
    """
    header = head.header if head is not None else ()
    names = dict(zip(document.get("columns", []), header, strict=False))
    return [
        {
            "column": names.get(each["target"]) or target_label(each["target"])
            if each["target"]
            else "",
            "detail": worded(each["detail"]),
            "count": each["count"],
            "rows": _numbers(each),
        }
        for each in sorted(found, key=lambda each: (-each["count"], each["code"]))
    ]


def worded(problem: str) -> str:
    """Return what was found in the words of the console, which has an input for the country."""
    return problem.replace(LOST_SIGN, CHOOSE_COUNTRY)


def _numbers(problem: RowProblem) -> str:
    shown: Sequence[int] = problem["rows"][:MAX_SHOWN]
    more = problem["count"] - len(shown)
    numbers = ", ".join(map(str, shown)) + (f", and {more:,} more" if more else "")
    return f"Row {numbers}" if problem["count"] == 1 else f"Rows {numbers}"
