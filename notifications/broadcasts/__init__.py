"""Telling many people one thing: the audience is read page by page, whatever its size.

MongoDB says how far a broadcast has come; a message names a broadcast and means "read its next
page". docs/decisions/0022-broadcasts.md says why it is built like this.
"""

from .beginning import Begun, begin
from .controlling import NotPossible, cancel, pause, resume
from .pages import go_on, go_on_here
from .reading import figures, one, page
from .requests import MAX_USER_IDS, AudienceRequest, BroadcastRequest
from .waking import wake

__all__ = [
    "MAX_USER_IDS",
    "AudienceRequest",
    "Begun",
    "BroadcastRequest",
    "NotPossible",
    "begin",
    "cancel",
    "figures",
    "go_on",
    "go_on_here",
    "one",
    "page",
    "pause",
    "resume",
    "wake",
]
