from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0020_snooze'),
    ]

    operations = [
        # Missing in documents that were written before.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='notification',
                    name='action',
                    field=models.CharField(blank=True, max_length=32, null=True),
                ),
                migrations.AddField(
                    model_name='notificationtype',
                    name='actions',
                    field=models.JSONField(blank=True, null=True),
                ),
            ],
        ),
    ]
