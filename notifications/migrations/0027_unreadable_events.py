from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0026_holds'),
    ]

    operations = [
        # Missing in documents that were written before.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='webhooklog',
                    name='unreadable_count',
                    field=models.IntegerField(default=0),
                ),
            ],
        ),
    ]
