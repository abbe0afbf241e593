from typing import Any

import django_mongodb_backend.fields
from django.db import migrations, models

SENDER, CRITICAL = 'notifications:write', 'notifications:critical'


def grant(_apps: Any, schema_editor: Any) -> None:
    """Let clients that already send continue to send critical notifications."""
    clients = schema_editor.connection.get_collection('api_clients')
    clients.update_many({'scopes': SENDER}, {'$addToSet': {'scopes': CRITICAL}})


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0002_recipients_read'),
    ]

    operations = [
        migrations.AlterField(
            model_name='apiclient',
            name='scopes',
            field=django_mongodb_backend.fields.ArrayField(base_field=models.CharField(choices=[('notifications:read', 'Notifications:read'), ('notifications:write', 'Notifications:write'), ('notifications:resend', 'Notifications:resend'), ('notifications:critical', 'Notifications:critical'), ('recipients:read', 'Recipients:read'), ('recipients:write', 'Recipients:write'), ('devices:write', 'Devices:write'), ('inbox:issue', 'Inbox:issue'), ('suppressions:write', 'Suppressions:write'), ('callbacks:write', 'Callbacks:write'), ('templates:write', 'Templates:write'), ('admin', 'Admin')], max_length=40), blank=True, default=list),
        ),
        migrations.RunPython(grant, migrations.RunPython.noop),
    ]
