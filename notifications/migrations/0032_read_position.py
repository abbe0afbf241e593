from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0031_push_options'),
    ]

    operations = [
        # Absent in the inboxes that exist: nothing to write.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='inboxvisit',
                    name='read_before',
                    field=models.DateTimeField(null=True),
                ),
                migrations.AddField(
                    model_name='inboxvisit',
                    name='read_at',
                    field=models.DateTimeField(null=True),
                ),
            ],
        ),
    ]
