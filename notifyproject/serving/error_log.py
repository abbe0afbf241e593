"""gunicorn's error log, in a process that has loaded its settings before gunicorn."""

from typing import Any

from gunicorn.glogging import Logger


class ErrorLog(Logger):
    """Keeps the handlers of the settings, which gunicorn's would repeat.

    gunicorn's format also needs a field that the settings switch off.
    """

    def _set_handler(self, log: Any, *args: Any, **options: Any) -> None:
        if not log.handlers:
            super()._set_handler(log, *args, **options)
