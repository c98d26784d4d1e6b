"""Exclude disturbed trials from summaries if there is a clean one."""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("experiments.migrations.0028_parts_of_histories").WITH_PARTS
AND_TRUSTED = "AND experiments_in_statistics(t.trust, m.metric, m.scope)"
DISTURBED = "t.trust IN ('degraded', 'unusable') AND t.conditions ? 'disturbances'"
COUNTED = "t.configuration_id = which AND t.state = 'finished' AND t.kind = 'measured' AND NOT t.superseded"
END = "END $$;"
SUMMARISES = BEFORE[BEFORE.index("    DELETE FROM experiments_summary") : BEFORE.index(END)]
# The statements for all other configurations stay as they are, with their plans.
WITHOUT_DISTURBED = f"""
    IF EXISTS (SELECT 1 FROM experiments_trial t WHERE {COUNTED} AND {DISTURBED})
        AND EXISTS (SELECT 1 FROM experiments_trial t WHERE {COUNTED} AND NOT ({DISTURBED}))
    THEN
    {SUMMARISES.replace(AND_TRUSTED, f"{AND_TRUSTED} AND NOT ({DISTURBED})")}
    END IF;
"""  # noqa: S608 - from constants
WITH_CLEAN = BEFORE.replace(END, WITHOUT_DISTURBED + END)
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
