import django_mongodb_backend.fields
import domain.limits
import notifyproject.db.indexes
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0022_limits'),
    ]

    operations = [
        migrations.CreateModel(
            name='Digest',
            fields=[
                ('id', django_mongodb_backend.fields.ObjectIdAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group', models.CharField(max_length=64)),
                ('status', models.CharField(choices=[('open', 'Open'), ('closing', 'Closing'), ('sealed', 'Sealed'), ('closed', 'Closed')], max_length=40)),
                ('outcome', models.CharField(blank=True, max_length=16, null=True)),
                ('client_id', django_mongodb_backend.fields.ObjectIdField()),
                ('user_id', models.CharField(blank=True, max_length=128, null=True)),
                ('type', models.CharField(max_length=64)),
                ('channel', models.CharField(choices=[('email', 'Email'), ('push', 'Push'), ('whatsapp', 'Whatsapp'), ('in_app', 'In app')], max_length=40)),
                ('is_test', models.BooleanField(default=False)),
                ('key', models.CharField(blank=True, max_length=200, null=True)),
                ('leader', models.CharField(blank=True, max_length=40, null=True)),
                ('max_items', models.IntegerField()),
                ('min_items', models.IntegerField()),
                ('template_version', models.IntegerField(blank=True, null=True)),
                ('opened_at', models.DateTimeField()),
                ('window_ends_at', models.DateTimeField()),
                ('closes_at', models.DateTimeField()),
                ('due_at', models.DateTimeField(blank=True, null=True)),
                ('is_cancelled', models.BooleanField(default=False)),
                ('epoch', models.IntegerField(default=0)),
                ('lease_token', models.CharField(blank=True, max_length=32, null=True)),
                ('lease_count', models.IntegerField(blank=True, null=True)),
                ('count', models.IntegerField(blank=True, null=True)),
                ('dropped', models.IntegerField(blank=True, null=True)),
                ('carrier_id', django_mongodb_backend.fields.ObjectIdField(blank=True, null=True)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('purge_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'digests',
                'ordering': ('-opened_at', '-id'),
                'permissions': (('end_digest', 'Can send now and cancel'),),
                'default_permissions': ('view',),
            },
        ),
        # Missing in documents that were written before.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='delivery',
                    name='carried_by',
                    field=django_mongodb_backend.fields.ObjectIdField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='delivery',
                    name='digest_epoch',
                    field=models.IntegerField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='delivery',
                    name='digest_id',
                    field=django_mongodb_backend.fields.ObjectIdField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='delivery',
                    name='merged_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='delivery',
                    name='skips_digest',
                    field=models.BooleanField(null=True),
                ),
                migrations.AddField(
                    model_name='notification',
                    name='digest_id',
                    field=django_mongodb_backend.fields.ObjectIdField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='notificationtype',
                    name='digest',
                    field=models.JSONField(blank=True, null=True),
                ),
            ],
        ),
        migrations.AlterField(
            model_name='delivery',
            name='status',
            field=models.CharField(choices=[('pending', 'Pending'), ('sending', 'Sending'), ('unknown', 'Unknown'), ('sent', 'Sent'), ('delivered', 'Delivered'), ('read', 'Read'), ('failed', 'Failed'), ('expired', 'Expired'), ('cancelled', 'Cancelled'), ('suppressed', 'Suppressed'), ('merged', 'Merged')], max_length=40),
        ),
        migrations.AlterField(
            model_name='limit',
            name='overflow',
            field=models.CharField(choices=[('later', 'Later'), ('digest', 'Digest'), ('drop', 'Drop')], default=domain.limits.Overflow['LATER'], max_length=40),
        ),
        migrations.AlterField(
            model_name='notification',
            name='status',
            field=models.CharField(choices=[('created', 'Created'), ('queued', 'Queued'), ('processing', 'Processing'), ('retrying', 'Retrying'), ('sent', 'Sent'), ('delivered', 'Delivered'), ('partially_delivered', 'Partially delivered'), ('failed', 'Failed'), ('expired', 'Expired'), ('cancelled', 'Cancelled'), ('merged', 'Merged')], max_length=40),
        ),
        migrations.AddIndex(
            model_name='notification',
            index=notifyproject.db.indexes.MongoIndex('delivery.digest_id', '_id', name='ntf_digest', partial={'delivery.digest_id': {'$exists': True}}),
        ),
        migrations.AddIndex(
            model_name='digest',
            index=notifyproject.db.indexes.MongoIndex('group', name='dig_open', partial={'status': 'open'}, unique=True),
        ),
        migrations.AddIndex(
            model_name='digest',
            index=notifyproject.db.indexes.MongoIndex('group', '-opened_at', name='dig_group'),
        ),
        migrations.AddIndex(
            model_name='digest',
            index=notifyproject.db.indexes.MongoIndex('due_at', '_id', name='dig_due', partial={'due_at': {'$exists': True}}),
        ),
        migrations.AddIndex(
            model_name='digest',
            index=notifyproject.db.indexes.MongoIndex('-opened_at', '-_id', name='dig_opened'),
        ),
        migrations.AddIndex(
            model_name='digest',
            index=notifyproject.db.indexes.MongoIndex('client_id', '-opened_at', '-_id', name='dig_client'),
        ),
        migrations.AddIndex(
            model_name='digest',
            index=notifyproject.db.indexes.MongoIndex('user_id', '-opened_at', '-_id', name='dig_user', partial={'user_id': {'$exists': True}}),
        ),
        migrations.AddIndex(
            model_name='digest',
            index=notifyproject.db.indexes.MongoIndex('status', '-opened_at', '-_id', name='dig_status'),
        ),
        migrations.AddIndex(
            model_name='digest',
            index=notifyproject.db.indexes.MongoIndex('purge_at', expire_after_seconds=0, name='dig_purge'),
        ),
    ]
