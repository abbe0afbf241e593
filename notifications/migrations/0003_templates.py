from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0002_staff_permissions'),
    ]

    operations = [
        migrations.AddField(
            model_name='notificationtype',
            name='template_version',
            field=models.IntegerField(default=0, editable=False),
        ),
        migrations.CreateModel(
            name='TemplateVersion',
            fields=[
                ('id', models.CharField(db_column='_id', max_length=72, primary_key=True, serialize=False)),
                ('type', models.CharField(max_length=64)),
                ('number', models.IntegerField()),
                ('parts', models.JSONField()),
                ('note', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField()),
                ('created_by', models.CharField(max_length=160)),
                ('published_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'template_versions',
                'ordering': ('-id',),
                'default_permissions': (),
            },
        ),
    ]
