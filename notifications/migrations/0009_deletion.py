import notifyproject.db.indexes
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0008_read_marks'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='notification',
            options={'ordering': ('-created_at', '-id'), 'permissions': (('retry_notification', 'Can retry what failed'), ('resend_notification', 'Can send again'), ('resend_several', 'Can send several again at once'), ('cancel_notification', 'Can cancel what is pending'), ('reschedule_notification', 'Can send at another time, or now'), ('restore_notification', 'Can restore what a client deleted'), ('view_addresses', 'Can see unmasked addresses'), ('reveal_addresses', 'Can have one masked address shown, on record'))},
        ),
        # Missing in documents that were written before: nothing is to be rewritten.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='notification',
                    name='deleted_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
            ],
        ),
        # In the order of the lists of what was deleted.
        migrations.RemoveIndex(model_name='notification', name='ntf_inactive'),
        migrations.AddIndex(
            model_name='notification',
            index=notifyproject.db.indexes.MongoIndex('is_active', '-created_at', '-_id', name='ntf_inactive', partial={'is_active': False}),
        ),
    ]
