from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0028_ready_and_trial'),
    ]

    operations = [
        migrations.AddField(
            model_name='content',
            name='event_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
