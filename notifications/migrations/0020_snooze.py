import notifyproject.db.indexes
from django.db import migrations, models

SNOOZED = {'snoozed_until': {'$exists': True}}


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0019_plans'),
    ]

    operations = [
        # Missing in documents that were written before.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='notification',
                    name=name,
                    field=models.DateTimeField(blank=True, null=True),
                )
                for name in ('snoozed_until', 'resurfaced_at')
            ],
        ),
        migrations.AddIndex(
            model_name='notification',
            index=notifyproject.db.indexes.MongoIndex(
                'user_id', 'client_id', 'snoozed_until', '_id', name='ntf_snoozed', partial=SNOOZED
            ),
        ),
        migrations.AddIndex(
            model_name='notification',
            index=notifyproject.db.indexes.MongoIndex(
                'snoozed_until', name='ntf_snooze_due', partial=SNOOZED
            ),
        ),
    ]
