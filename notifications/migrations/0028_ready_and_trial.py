import django_mongodb_backend.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0027_unreadable_events'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            # An embedded field needs no change of the database.
            state_operations=[
                migrations.AddField(
                    model_name='delivery',
                    name='ready_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
            ],
        ),
        migrations.AddField(
            model_name='bulkoperation',
            name='acted_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='bulkoperation',
            name='is_proven',
            field=models.BooleanField(null=True),
        ),
        migrations.AddField(
            model_name='bulkoperation',
            name='recent',
            field=django_mongodb_backend.fields.ArrayField(models.CharField(max_length=48), blank=True, null=True),
        ),
    ]
