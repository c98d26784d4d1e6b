"""Exclude disturbed trials from the summaries of configurations that have a clean one."""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("experiments.migrations.0028_parts_of_histories").WITH_PARTS
AND_TRUSTED = "AND experiments_in_statistics(t.trust, m.metric, m.scope)"
DISTURBED = "t.trust IN ('degraded', 'unusable') AND t.conditions ? 'disturbances'"
AND_UNDISTURBED = f" AND NOT (has_clean AND {DISTURBED})"
HAS_CLEAN = f"""
    -- Asked once, not for every row of every trial.
    has_clean := EXISTS (
        SELECT 1 FROM experiments_trial t
        WHERE t.configuration_id = which AND t.state = 'finished' AND t.kind = 'measured' AND NOT t.superseded
          AND NOT ({DISTURBED})
    );
"""  # noqa: S608 - from constants
SUMMARIES = "    DELETE FROM experiments_summary"
WITH_CLEAN = (
    BEFORE.replace(AND_TRUSTED, AND_TRUSTED + AND_UNDISTURBED)
    .replace("AS $$\nBEGIN\n", "AS $$\nDECLARE\n    has_clean boolean;\nBEGIN\n")
    .replace(SUMMARIES, HAS_CLEAN + SUMMARIES)
)
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
            WITH_CLEAN + REBUILD,
            BEFORE + REBUILD,
        )
    ]
