"""What a long-lived process does before it takes any work.

``manage.py`` looks at the settings before every command; a web or Celery process does so here.
"""

import gc

from django.core import checks
from django.core.management.base import SystemCheckError
from django.urls import reverse

from . import publishing


def refuse_unsafe_settings() -> None:
    """Raise SystemCheckError if a setting would lose or misdirect notifications."""
    found = checks.run_checks(tags=[checks.Tags.security])
    serious = [one for one in found if one.is_serious() and not one.is_silenced()]
    if serious:
        lines = ["It does not start with these settings:", *map(str, serious)]
        raise SystemCheckError("\n".join(lines))


def load_everything() -> None:
    """Load what the first call would wait for: views, their libraries, the broker's driver.

    Half a second to a second of work, and a caller of each new process had to wait for it.
    """
    # To know one address, Django loads the views behind all of them.
    reverse("admin:index")
    publishing.load_driver()


def set_aside_what_stays() -> None:
    """Have the garbage collector leave alone what is loaded, and look at the rest less often.

    It need not go through all of Django in the midst of a call, nor look at every 700 objects of
    one that makes a hundred thousand: that was a quarter of the CPU of a bulk call.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
