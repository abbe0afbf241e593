from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0004_unmasked_addresses'),
    ]

    operations = [
        migrations.AddField(
            model_name='delivery',
            name='earlier_attempts',
            field=models.IntegerField(blank=True, null=True),
        ),
    ]
