
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0003_templates'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='broadcast',
            options={'ordering': ('-created_at', '-id'), 'permissions': (('pause_broadcast', 'Can pause'), ('resume_broadcast', 'Can resume'), ('cancel_broadcast', 'Can cancel, with its pending deliveries'))},
        ),
        migrations.AlterModelOptions(
            name='notification',
            options={'ordering': ('-created_at', '-id'), 'permissions': (('retry_notification', 'Can retry failed deliveries'), ('resend_notification', 'Can resend'), ('resend_several', 'Can resend several at once'), ('cancel_notification', 'Can cancel pending deliveries'), ('reschedule_notification', 'Can reschedule, and send now'), ('view_addresses', 'Can see unmasked addresses'), ('reveal_addresses', 'Can reveal one masked address, with an audit entry'))},
        ),
        migrations.AlterModelOptions(
            name='waitingnotification',
            options={'default_permissions': (), 'verbose_name': 'waiting notification', 'verbose_name_plural': 'scheduled and held'},
        ),
        migrations.AlterModelOptions(
            name='webhooklog',
            options={'ordering': ('-received_at', '-id'), 'permissions': (('replay_webhooklog', 'Can replay provider webhooks'),)},
        ),
    ]
