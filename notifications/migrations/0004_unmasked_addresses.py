from typing import Any

from django.db import migrations

OLD, NEW = 'Can see addresses whole', 'Can see unmasked addresses'


def rename(apps: Any, _schema_editor: Any) -> None:
    """Rename the stored permission, because ``migrate`` only adds missing ones."""
    permissions = apps.get_model('auth', 'Permission').objects
    # Without the model's order, which joins collections.
    permissions.filter(codename='view_addresses', name=OLD).order_by().update(name=NEW)


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0001_initial'),
        ('notifications', '0003_templates'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='notification',
            options={'ordering': ('-created_at', '-id'), 'permissions': (('retry_notification', 'Can retry what failed'), ('resend_notification', 'Can send again'), ('resend_several', 'Can send several again at once'), ('cancel_notification', 'Can cancel what is pending'), ('reschedule_notification', 'Can send at another time, or now'), ('view_addresses', 'Can see unmasked addresses'), ('reveal_addresses', 'Can have one masked address shown, on record'))},
        ),
        migrations.RunPython(rename, migrations.RunPython.noop),
    ]
