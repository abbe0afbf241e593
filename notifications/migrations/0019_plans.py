from typing import Any

from django.db import connections, migrations, models

IS_PRIMARY = {'$in': ['$$d.channel', '$delivery.instead_of']}
IS_FALLBACK = {'$gt': ['$$d.instead_of', None]}
STEP = {'$cond': [IS_FALLBACK, {'step': 2}, {'$cond': [IS_PRIMARY, {'step': 1}, {}]}]}


def number_steps(_apps: Any, schema_editor: Any) -> None:
    """Make a fallback of each open notification the second step of a plan."""
    notifications = connections[schema_editor.connection.alias].get_collection('notifications')
    each = {'$map': {'input': '$delivery', 'as': 'd', 'in': {'$mergeObjects': ['$$d', STEP]}}}
    notifications.update_many(
        {'due_at': {'$exists': True}, 'delivery.instead_of': {'$exists': True}},
        [{'$set': {'plan_until': 'delivered', 'delivery': each}}],
    )


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0018_webhook_search'),
    ]

    operations = [
        # Missing in documents that were written before.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(model_name='delivery', name='instead_of'),
                migrations.AddField(
                    model_name='delivery',
                    name='skip_if_late',
                    field=models.IntegerField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='delivery',
                    name='step',
                    field=models.IntegerField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='notification',
                    name='acted_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='notification',
                    name='plan_until',
                    field=models.CharField(blank=True, max_length=16, null=True),
                ),
                migrations.AddField(
                    model_name='notificationtype',
                    name='plan',
                    field=models.JSONField(blank=True, null=True),
                ),
            ],
        ),
        migrations.RunPython(number_steps, migrations.RunPython.noop),
    ]
