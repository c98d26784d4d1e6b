"""Exclude disturbed trials from the summaries of configurations that have a clean one."""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("experiments.migrations.0028_parts_of_histories").WITH_PARTS
AND_TRUSTED = "AND experiments_in_statistics(t.trust, m.metric, m.scope)"
AND_UNDISTURBED = """
      AND NOT (t.trust IN ('degraded', 'unusable') AND t.conditions ? 'disturbances' AND EXISTS (
        SELECT 1 FROM experiments_trial clean
        WHERE clean.configuration_id = which AND clean.state = 'finished' AND clean.kind = 'measured'
          AND NOT clean.superseded
          AND NOT (clean.trust IN ('degraded', 'unusable') AND clean.conditions ? 'disturbances')
      ))
"""
REBUILD = """
SELECT experiments_summarise(configuration_id)
FROM (
    SELECT DISTINCT configuration_id FROM experiments_trial
    WHERE trust IN ('degraded', 'unusable') AND conditions ? 'disturbances'
) AS disturbed;
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0029_sizes_of_designs")]

    operations = [
        migrations.RunSQL(
            BEFORE.replace(AND_TRUSTED, AND_TRUSTED + AND_UNDISTURBED) + REBUILD,
            BEFORE + REBUILD,
        )
    ]
