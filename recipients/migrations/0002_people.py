import django_mongodb_backend.fields
import notifyproject.db.indexes
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('recipients', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('phone', models.CharField(db_column='_id', max_length=16, primary_key=True, serialize=False)),
                ('last_inbound_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'conversations',
                'ordering': ('phone',),
                'indexes': [notifyproject.db.indexes.MongoIndex('expires_at', expire_after_seconds=0, name='cnv_expires')],
            },
        ),
        migrations.CreateModel(
            name='Suspicion',
            fields=[
                ('id', models.CharField(db_column='_id', max_length=300, primary_key=True, serialize=False)),
                ('events', django_mongodb_backend.fields.ArrayField(base_field=models.CharField(max_length=200), default=list)),
                ('expires_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'suspicions',
                'indexes': [notifyproject.db.indexes.MongoIndex('expires_at', expire_after_seconds=0, name='sus_expires')],
            },
        ),
        migrations.CreateModel(
            name='TopicMember',
            fields=[
                ('id', models.CharField(db_column='_id', max_length=200, primary_key=True, serialize=False)),
                ('topic', models.CharField(max_length=64)),
                ('user_id', models.CharField(max_length=128)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'topic_members',
                'ordering': ('id',),
                'indexes': [notifyproject.db.indexes.MongoIndex('topic', '_id', name='tpm_topic'), notifyproject.db.indexes.MongoIndex('user_id', '_id', name='tpm_user')],
            },
        ),
    ]
