from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0015_attempt_receipts'),
    ]

    operations = [
        migrations.AddField(
            model_name='delivery',
            name='held_reason',
            field=models.CharField(blank=True, max_length=40, null=True),
        ),
    ]
