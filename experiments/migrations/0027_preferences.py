import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import experiments.models.people.preferences


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("experiments", "0026_values_of_trials_as_arrays"),
    ]

    operations = [
        migrations.CreateModel(
            name="Preferences",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "theme",
                    models.CharField(
                        choices=[("system", "as the system"), ("light", "light"), ("dark", "dark")],
                        default="system",
                        max_length=6,
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        blank=True,
                        max_length=64,
                        validators=[experiments.models.people.preferences.require_time_zone],
                    ),
                ),
                ("seen_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preferences",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]
