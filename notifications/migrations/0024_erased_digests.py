from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0023_digests'),
    ]

    operations = [
        # Missing in documents that were written before.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='digest',
                    name='erased_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
            ],
        ),
    ]
