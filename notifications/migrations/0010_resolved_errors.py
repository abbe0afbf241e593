from typing import Any

from django.db import connections, migrations

SUCCEEDED = ['sent', 'delivered']


def forget(_apps: Any, schema_editor: Any) -> None:
    """Remove the error of notifications that were sent on every channel after it."""
    notifications = connections[schema_editor.connection.alias].get_collection('notifications')
    notifications.update_many(
        {'status': {'$in': SUCCEEDED}, 'error': {'$exists': True}}, {'$unset': {'error': ''}}
    )


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0009_deletion'),
    ]

    operations = [
        migrations.RunPython(forget, migrations.RunPython.noop),
    ]
