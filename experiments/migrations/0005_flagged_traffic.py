"""Leave the traffic of flagged captures out of the summaries."""

from typing import Any

from django.db import migrations, models
from django.db.models import Q

from experiments.traffic import define_in_database

SUMMARISE = """
CREATE OR REPLACE FUNCTION experiments_summarise(which bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- Two trials of one configuration may end at once: the second waits here and then sees the first's rows.
    PERFORM 1 FROM experiments_configuration WHERE id = which FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM experiments_summary WHERE configuration_id = which;
    INSERT INTO experiments_summary (configuration_id, metric, scope, n, median, minimum, maximum, samples)
    SELECT which, m.metric, m.scope, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY m.value),
           min(m.value), max(m.value), array_agg(m.value ORDER BY t.repetition, t.id)
    FROM experiments_trial t JOIN experiments_measurement m ON m.trial_id = t.id
    WHERE t.configuration_id = which AND t.state = 'finished' AND t.kind = 'measured' AND NOT t.superseded
      {and_trusted}
    GROUP BY m.metric, m.scope;
END $$;
"""
TRIGGER = """
DROP TRIGGER trial_changed ON experiments_trial;
CREATE CONSTRAINT TRIGGER trial_changed AFTER UPDATE ON experiments_trial DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN ((OLD.state = 'finished' OR NEW.state = 'finished')
        AND (OLD.state, OLD.superseded, OLD.kind{old}) IS DISTINCT FROM (NEW.state, NEW.superseded, NEW.kind{new}))
    EXECUTE FUNCTION experiments_trial_counted();
"""
VACUUMED = """
-- The explorer reads the index alone as long as VACUUM keeps up with what is written.
ALTER TABLE experiments_summary SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
"""
REBUILD = """
SELECT experiments_summarise(configuration_id)
FROM (SELECT DISTINCT configuration_id FROM experiments_trial WHERE trust IN ('degraded', 'unusable')) AS flagged;
"""


def define(apps: Any, schema_editor: Any) -> None:
    """Define the function before summaries need it; later migrates replace it."""
    define_in_database(using=schema_editor.connection.alias)


class Migration(migrations.Migration):
    dependencies = [("experiments", "0004_ordered_specifications")]

    operations = [
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(
                condition=Q(kind="measured", state="finished", superseded=False, trust__in=["degraded", "unusable"]),
                fields=["configuration"],
                name="trial_flagged",
            ),
        ),
        migrations.RunPython(define, migrations.RunPython.noop),
        migrations.RunSQL(
            SUMMARISE.format(and_trusted="AND experiments_in_statistics(t.trust, m.metric, m.scope)")
            + TRIGGER.format(old=", OLD.trust", new=", NEW.trust")
            + VACUUMED
            + REBUILD,
            SUMMARISE.format(and_trusted="") + TRIGGER.format(old="", new="") + REBUILD,
        ),
    ]
