"""Keep the number of configurations of each design.

The explorer counted all of them for every page. Triggers of the statement add and take away what one adds or takes
away, whatever writes, revises, removes or brings back configurations. Nothing is counted anew: of two transactions that
change one design neither would see the other's rows.
"""

import django.db.models.deletion
from django.db import migrations, models

FUNCTIONS = """
CREATE FUNCTION experiments_designs_grew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO experiments_designsize (experiment_id, configurations)
    SELECT experiment_id, count(*) FILTER (WHERE in_design) FROM changed GROUP BY experiment_id ORDER BY experiment_id
    ON CONFLICT (experiment_id) DO UPDATE
    SET configurations = experiments_designsize.configurations + EXCLUDED.configurations;
    RETURN NULL;
END $$;

CREATE FUNCTION experiments_designs_shrank() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The experiment may go too, and its row with it: there is nothing to add here.
    UPDATE experiments_designsize size SET configurations = size.configurations - less.configurations
    FROM (SELECT experiment_id, count(*) FILTER (WHERE in_design) AS configurations FROM changed GROUP BY experiment_id) AS less
    WHERE size.experiment_id = less.experiment_id AND less.configurations > 0;
    RETURN NULL;
END $$;

CREATE FUNCTION experiments_designs_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE experiments_designsize size SET configurations = size.configurations + more.configurations
    FROM (
        SELECT experiment_id, sum(n) AS configurations
        FROM (
            SELECT experiment_id, in_design::integer AS n FROM changed
            UNION ALL SELECT experiment_id, -in_design::integer FROM before
        ) AS both_of
        GROUP BY experiment_id
    ) AS more
    WHERE size.experiment_id = more.experiment_id AND more.configurations <> 0;
    RETURN NULL;
END $$;
"""
TRIGGERS = """
CREATE TRIGGER configurations_inserted AFTER INSERT ON experiments_configuration
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION experiments_designs_grew();
CREATE TRIGGER configurations_deleted AFTER DELETE ON experiments_configuration
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION experiments_designs_shrank();
CREATE TRIGGER configurations_updated AFTER UPDATE ON experiments_configuration
    REFERENCING OLD TABLE AS before NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION experiments_designs_changed();
"""
OF_OLD_DESIGNS = """
INSERT INTO experiments_designsize (experiment_id, configurations)
SELECT experiment_id, count(*) FILTER (WHERE in_design) FROM experiments_configuration GROUP BY experiment_id;
"""
REMOVAL = """
DROP TRIGGER configurations_inserted ON experiments_configuration;
DROP TRIGGER configurations_deleted ON experiments_configuration;
DROP TRIGGER configurations_updated ON experiments_configuration;
DROP FUNCTION experiments_designs_grew();
DROP FUNCTION experiments_designs_shrank();
DROP FUNCTION experiments_designs_changed();
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0028_parts_of_histories")]

    operations = [
        migrations.CreateModel(
            name="DesignSize",
            fields=[
                (
                    "experiment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="design_size",
                        serialize=False,
                        to="experiments.experiment",
                    ),
                ),
                ("configurations", models.PositiveIntegerField(help_text="Of the current version.")),
            ],
        ),
        migrations.RunSQL(FUNCTIONS + TRIGGERS + OF_OLD_DESIGNS, REMOVAL),
    ]
