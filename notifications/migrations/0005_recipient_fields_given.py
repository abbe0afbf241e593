import django_mongodb_backend.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0004_permission_names'),
    ]

    operations = [
        migrations.AddField(
            model_name='recipientcopy',
            name='given',
            field=django_mongodb_backend.fields.ArrayField(base_field=models.CharField(max_length=16), blank=True, null=True),
        ),
    ]
