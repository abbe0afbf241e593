from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0029_event_at'),
    ]

    operations = [
        migrations.AddField(
            model_name='content',
            name='has_own_subject',
            field=models.BooleanField(default=False),
        ),
    ]
