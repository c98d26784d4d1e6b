"""Keep the part of each configuration in a history.

Neither one history nor their list reads all trials. The function that writes summaries writes it, whatever ends,
replaces or removes a trial.
"""

from importlib import import_module

import django.db.models.deletion
from django.db import migrations, models

BEFORE = import_module("experiments.migrations.0017_efficiencies_of_trials").BEFORE_SUMMARIES
PARTS = """
    INSERT INTO experiments_historypart (configuration_id, experiment_id, cluster_id, hash, trials, newest_at)
    SELECT c.id, c.experiment_id, t.cluster_id, c.hash, count(m.trial_id), max(t.ended_at)
    FROM experiments_configuration c
    JOIN experiments_trial t ON t.configuration_id = c.id
    LEFT JOIN experiments_measurement m ON m.trial_id = t.id AND m.metric = 'elapsed_s' AND m.scope = 'all'
    WHERE {whose} AND t.state = 'finished' AND t.kind = 'measured' AND NOT t.superseded
      AND t.cluster_id IS NOT NULL AND t.ended_at IS NOT NULL
    GROUP BY c.id, t.cluster_id;
"""
SUMMARIES = "    DELETE FROM experiments_summary"
ANEW = "    DELETE FROM experiments_historypart WHERE configuration_id = which;{parts}"
WITH_PARTS = BEFORE.replace(SUMMARIES, ANEW.format(parts=PARTS.format(whose="c.id = which")) + SUMMARIES)
VACUUMED = """
-- As of summaries: the list of histories reads every part, and counts on what VACUUM leaves.
ALTER TABLE experiments_historypart SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0027_preferences")]

    operations = [
        migrations.CreateModel(
            name="HistoryPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("hash", models.CharField(max_length=64)),
                ("trials", models.PositiveIntegerField(help_text="Those with an elapsed time.")),
                ("newest_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="experiments.cluster",
                    ),
                ),
                (
                    "configuration",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="experiments.configuration",
                    ),
                ),
                (
                    "experiment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="experiments.experiment"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["hash", "cluster", "-newest_at"], name="parts_newest_first")],
                "constraints": [
                    models.UniqueConstraint(fields=("configuration", "cluster"), name="one_part_per_history")
                ],
            },
        ),
        migrations.RunSQL(WITH_PARTS + PARTS.format(whose="true") + VACUUMED, BEFORE),
    ]
