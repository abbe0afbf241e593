"""What sending the same again would be, before anybody asks for it: safe, pointless, a second copy.

:func:`verdict` judges one delivery by what is known of it and is pure; :func:`verdicts_for` gathers
what is known of many notifications with a handful of reads. The verdict is about a resend: the same
words to the same person on the same channel, as a new notification whose time begins anew. A retry
is judged alike.
"""

from .judging import Facts, Kind, Verdict, verdict
from .surroundings import verdicts_for

__all__ = ["Facts", "Kind", "Verdict", "verdict", "verdicts_for"]
