"""``python -m notifyproject.stack.prepare``: make the local mongod a primary, and migrate."""

import argparse

import django
from django.core.management import call_command

from . import servers


def main() -> None:
    """Prepare the database. Without ``--mongod``, its server is not the stack's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mongod", type=int, help="port of the stack's own server")
    port = parser.parse_args().mongod
    if port is not None:
        servers.make_primary(port)
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)


if __name__ == "__main__":
    main()
