"""Keep the values of every trial as one array beside its measurements.

Exports read these (decision 21). Triggers of the statement write them, whatever writes, changes or removes
measurements.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

GATHERED = """
    SELECT trial_id, array_agg(scope || ' ' || metric ORDER BY metric COLLATE "C", scope COLLATE "C") AS names,
        array_agg(value ORDER BY metric COLLATE "C", scope COLLATE "C") AS numbers
    FROM experiments_measurement {where} GROUP BY trial_id
"""
NEW_NAMES = """
    INSERT INTO experiments_valuenames (digest, names)
    SELECT DISTINCT ON (digest) digest, names
    FROM (SELECT names, md5(names::text) AS digest FROM ({gathered}) AS own) AS named
    WHERE NOT EXISTS (SELECT FROM experiments_valuenames known WHERE known.digest = named.digest);
"""
ARRAYS = """
    INSERT INTO experiments_trialvalues (trial_id, names_id, numbers)
    SELECT own.trial_id, known.id, own.numbers
    FROM ({gathered}) AS own
    CROSS JOIN LATERAL (
        SELECT id FROM experiments_valuenames WHERE digest = md5(own.names::text) ORDER BY id LIMIT 1
    ) AS known
    ON CONFLICT (trial_id) DO UPDATE SET names_id = EXCLUDED.names_id, numbers = EXCLUDED.numbers;
"""
THEIRS = GATHERED.format(where="WHERE trial_id = ANY(which)")
FUNCTIONS = f"""
CREATE FUNCTION experiments_gather_values(which bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- Who changes the same trial is waited for: the statements after this one see what they wrote.
    PERFORM FROM experiments_trialvalues WHERE trial_id = ANY(which) ORDER BY trial_id FOR UPDATE;
    {NEW_NAMES.format(gathered=THEIRS)}
    {ARRAYS.format(gathered=THEIRS)}
    DELETE FROM experiments_trialvalues v
    WHERE v.trial_id = ANY(which) AND NOT EXISTS (SELECT FROM experiments_measurement m WHERE m.trial_id = v.trial_id);
END $$;

CREATE FUNCTION experiments_measurements_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM experiments_gather_values(ARRAY(SELECT DISTINCT trial_id FROM changed));
    RETURN NULL;
END $$;

CREATE FUNCTION experiments_measurements_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM experiments_gather_values(ARRAY(SELECT trial_id FROM before UNION SELECT trial_id FROM changed));
    RETURN NULL;
END $$;
"""  # noqa: S608 - texts of our own
TRIGGERS = """
CREATE TRIGGER measurements_inserted AFTER INSERT ON experiments_measurement
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION experiments_measurements_changed();
CREATE TRIGGER measurements_deleted AFTER DELETE ON experiments_measurement
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION experiments_measurements_changed();
CREATE TRIGGER measurements_updated AFTER UPDATE ON experiments_measurement
    REFERENCING OLD TABLE AS before NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION experiments_measurements_moved();
"""
OF_OLD_TRIALS = NEW_NAMES.format(gathered=GATHERED.format(where="")) + ARRAYS.format(gathered=GATHERED.format(where=""))
REMOVAL = """
DROP TRIGGER measurements_inserted ON experiments_measurement;
DROP TRIGGER measurements_deleted ON experiments_measurement;
DROP TRIGGER measurements_updated ON experiments_measurement;
DROP FUNCTION experiments_measurements_changed();
DROP FUNCTION experiments_measurements_moved();
DROP FUNCTION experiments_gather_values(bigint[]);
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0025_kinds_of_scheduler")]

    operations = [
        migrations.CreateModel(
            name="ValueNames",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(db_index=True, max_length=32)),
                (
                    "names",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TrialValues",
            fields=[
                (
                    "trial",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="as_array",
                        serialize=False,
                        to="experiments.trial",
                    ),
                ),
                (
                    "numbers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), help_text="In the order of the names.", size=None
                    ),
                ),
                (
                    "names",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="experiments.valuenames",
                    ),
                ),
            ],
            options={"verbose_name_plural": "trial values"},
        ),
        migrations.AlterField(
            model_name="measurement",
            name="trial",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="measurements",
                to="experiments.trial",
            ),
        ),
        migrations.RunSQL(FUNCTIONS + TRIGGERS + OF_OLD_TRIALS, REMOVAL),
    ]
