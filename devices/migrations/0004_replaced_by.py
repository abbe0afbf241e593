import django_mongodb_backend.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0003_token_by_id'),
    ]

    operations = [
        migrations.AddField(
            model_name='device',
            name='replaced_by',
            field=models.CharField(blank=True, max_length=64, null=True),
        ),
        migrations.AddField(
            model_name='device',
            name='replaces',
            field=django_mongodb_backend.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, null=True),
        ),
    ]
