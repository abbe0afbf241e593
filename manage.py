#!/usr/bin/env python
"""Django's command line for this project."""

import os
import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["healthcheck"]:
        # Without Django's set-up, which takes seconds.
        from notifyproject import healthcheck

        sys.exit(healthcheck.main(sys.argv[2:]))

    if sys.argv[1:2] == ["setup"]:
        # Before any setting exists.
        from wizard import wizard

        sys.exit(wizard.main(sys.argv[2:], environ=os.environ))

    if sys.argv[1:2] == ["service"]:
        # It loads the settings as each of its programs does by itself.
        from notifyproject.supervision import service

        sys.exit(service.main(sys.argv[2:]))

    if sys.argv[1:2] == ["stack"]:
        # Before the servers have addresses, there are no settings.
        from notifyproject.stack import command

        sys.exit(command.main(sys.argv[2:]))

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.local")
    import django
    from django.core.management import execute_from_command_line

    from notifyproject.platform import memory, refusal

    with refusal.shown_alone():
        with memory.loading():
            django.setup()
        execute_from_command_line(sys.argv)
