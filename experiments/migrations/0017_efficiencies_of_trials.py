"""Keep serialisation and transfer efficiency with every trial.

They follow from ideal-network runs. The same trigger as for summaries does it, whatever ends, replaces or removes a
trial or a twin. Readers of measurements (REST, exports, the explorer, comparisons) then need to know nothing of twins.
"""

from importlib import import_module

from django.db import migrations

SUMMARISE = import_module("experiments.migrations.0005_flagged_traffic").SUMMARISE.format(
    and_trusted="AND experiments_in_statistics(t.trust, m.metric, m.scope)"
)
SPLIT = """
CREATE FUNCTION experiments_split_by_twins(which bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ideal double precision;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM experiments_trial WHERE configuration_id = which AND kind = 'ideal') THEN
        RETURN;
    END IF;
    DELETE FROM experiments_measurement m USING experiments_trial t
    WHERE t.configuration_id = which AND m.trial_id = t.id
      AND m.metric IN ('mpi_serialisation_efficiency', 'mpi_transfer_efficiency');
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY m.value) INTO ideal
    FROM experiments_trial t JOIN experiments_measurement m ON m.trial_id = t.id
    WHERE t.configuration_id = which AND t.state = 'finished' AND t.kind = 'ideal' AND NOT t.superseded
      AND m.metric = 'mpi_window_s' AND m.scope = 'all';
    IF ideal IS NULL THEN
        RETURN;
    END IF;
    -- co-design.pop-coe.eu/metrics. By noise a twin can be the longer one, or shorter than the busiest rank here computes:
    -- then one of the two efficiencies is 1, and the other is all that communication costs.
    INSERT INTO experiments_measurement (trial_id, metric, scope, value)
    SELECT t.id, split.metric, 'all', split.value
    FROM experiments_trial t
    JOIN experiments_measurement whole ON whole.trial_id = t.id AND whole.metric = 'mpi_window_s' AND whole.scope = 'all'
    JOIN experiments_measurement busiest
      ON busiest.trial_id = t.id AND busiest.metric = 'mpi_useful_max_rank_s' AND busiest.scope = 'all'
    CROSS JOIN LATERAL (SELECT least(greatest(ideal, busiest.value), whole.value) AS s) AS between_them
    CROSS JOIN LATERAL (VALUES
        ('mpi_serialisation_efficiency', busiest.value / between_them.s),
        ('mpi_transfer_efficiency', between_them.s / whole.value)) AS split (metric, value)
    WHERE t.configuration_id = which AND t.state = 'finished' AND t.kind = 'measured'
      AND busiest.value > 0 AND whole.value >= busiest.value;
END $$;
"""
BEFORE_SUMMARIES = SUMMARISE.replace(
    "    DELETE FROM experiments_summary",
    "    PERFORM experiments_split_by_twins(which);\n    DELETE FROM experiments_summary",
)
OF_OLD_TRIALS = """
UPDATE experiments_trial SET not_available = not_available || (
    SELECT jsonb_object_agg(metric, 'no twin on an ideal network has finished beside it '
        '(ideal: true adds twins to measured trials, on the test-bed)')
    FROM (VALUES ('mpi_serialisation_efficiency'), ('mpi_transfer_efficiency')) AS both_of (metric))
WHERE not_available ->> 'mpi_transfer_efficiency' LIKE 'of a configuration, not of one trial:%';
SELECT experiments_summarise(configuration_id)
FROM (SELECT DISTINCT configuration_id FROM experiments_trial WHERE kind = 'ideal') AS with_twins;
"""
REMOVAL = """
DROP FUNCTION experiments_split_by_twins(bigint);
DELETE FROM experiments_measurement WHERE metric IN ('mpi_serialisation_efficiency', 'mpi_transfer_efficiency');
DELETE FROM experiments_summary WHERE metric IN ('mpi_serialisation_efficiency', 'mpi_transfer_efficiency');
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0016_idempotency_keys")]

    operations = [
        migrations.RunSQL(SPLIT + BEFORE_SUMMARIES + OF_OLD_TRIALS, SUMMARISE + REMOVAL),
    ]
