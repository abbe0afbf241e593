"""Links in texts. Pure."""

import re

_BEFORE = r"(?:^|(?<=[\s<>\"'(\[{|:\u00ab\u201c\u2018]))"
_AFTER = r"(?=[.,;:!?)\]}>|\"'\u00bb\u201d\u2019]*(?:[\s<]|$))"


def has_link(text: str, link: str) -> bool:
    """Return whether a text has a link as a whole, not as the beginning or end of another one."""
    return link in text and re.search(_BEFORE + re.escape(link) + _AFTER, text) is not None
