from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0012_unread_in_the_feed'),
    ]

    operations = [
        migrations.AddField(
            model_name='delivery',
            name='earlier_attempts',
            field=models.IntegerField(blank=True, null=True),
        ),
    ]
