"""Keep the last test of each cluster, which holds its hosts as a trial does."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0006_artifact_moments"),
    ]

    operations = [
        migrations.AlterField(
            model_name="lease",
            name="trial",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="leases",
                to="experiments.trial",
            ),
        ),
        migrations.CreateModel(
            name="ClusterTest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("asked_at", models.DateTimeField()),
                ("begun_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("trying", models.CharField(blank=True, help_text="What is being tried now.", max_length=200)),
                ("steps", models.JSONField(blank=True, default=list)),
                ("of_settings", models.CharField(blank=True, max_length=64)),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="test", to="experiments.cluster"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="lease",
            name="test",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="leases",
                to="experiments.clustertest",
            ),
        ),
        migrations.AddConstraint(
            model_name="lease",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("test__isnull", True), ("trial__isnull", False)),
                    models.Q(("test__isnull", False), ("trial__isnull", True)),
                    _connector="OR",
                ),
                name="lease_has_one_holder",
            ),
        ),
    ]
