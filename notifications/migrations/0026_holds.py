import django_mongodb_backend.fields
from django.db import migrations, models

import notifications.models.notification


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0025_suppressed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Hold',
            fields=[
                ('id', django_mongodb_backend.fields.ObjectIdAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(max_length=40)),
                ('provider', models.CharField(max_length=40)),
                ('since', models.DateTimeField()),
                ('detail', models.CharField(blank=True, max_length=200, null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.SeparateDatabaseAndState(
            # Embedded fields need no change of the database.
            state_operations=[
                migrations.AddField(
                    model_name='delivery',
                    name='holds',
                    field=django_mongodb_backend.fields.EmbeddedModelArrayField(blank=True, embedded_model=notifications.models.notification.Hold, null=True),
                ),
                migrations.AddField(
                    model_name='delivery',
                    name='ended_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
            ],
        ),
    ]
