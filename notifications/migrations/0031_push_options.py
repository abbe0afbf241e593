from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0030_own_subject'),
    ]

    operations = [
        migrations.AddField(
            model_name='content',
            name='push',
            field=models.JSONField(blank=True, null=True),
        ),
    ]
