import notifyproject.db.indexes
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('analytics', '0003_no_metrics_of_users'),
    ]

    operations = [
        migrations.AddField(
            model_name='incident',
            name='notes',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='MutedProblem',
            fields=[
                ('id', models.CharField(db_column='_id', max_length=120, primary_key=True, serialize=False)),
                ('by', models.CharField(max_length=150)),
                ('at', models.DateTimeField()),
                ('until', models.DateTimeField()),
            ],
            options={
                'db_table': 'muted_problems',
                'indexes': [notifyproject.db.indexes.MongoIndex('until', expire_after_seconds=0, name='mut_until')],
            },
        ),
    ]
