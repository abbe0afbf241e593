from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0007_once_per_entity_client'),
    ]

    operations = [
        # Missing in documents that were written before: nothing is to be rewritten.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='notification',
                    name='marked_read_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
            ],
        ),
    ]
