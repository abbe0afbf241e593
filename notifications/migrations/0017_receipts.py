import django_mongodb_backend.fields
import notifyproject.db.indexes
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0016_delivery_held_reason'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='notification',
            options={'ordering': ('-created_at', '-id'), 'permissions': (('retry_notification', 'Can retry failed deliveries'), ('resend_notification', 'Can resend'), ('resend_several', 'Can resend several at once'), ('correct_address', 'Can correct an address and resend'), ('cancel_notification', 'Can cancel pending deliveries'), ('reschedule_notification', 'Can reschedule, and send now'), ('restore_notification', 'Can restore deleted notifications'), ('view_addresses', 'Can see unmasked addresses'), ('reveal_addresses', 'Can reveal one masked address, with an audit entry'))},
        ),
        # Missing in documents that were written before: nothing is to be rewritten.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='providerevent',
                    name='notification_id',
                    field=django_mongodb_backend.fields.ObjectIdField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='providerevent',
                    name='channel',
                    field=models.CharField(blank=True, max_length=16, null=True),
                ),
                migrations.AddField(
                    model_name='providerevent',
                    name='kind',
                    field=models.CharField(blank=True, max_length=20, null=True),
                ),
                migrations.AddField(
                    model_name='providerevent',
                    name='at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='providerevent',
                    name='reason',
                    field=models.CharField(blank=True, max_length=500, null=True),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name='providerevent',
            index=notifyproject.db.indexes.MongoIndex('notification_id', name='evt_notification', sparse=True),
        ),
    ]
