"""Read the measurements of a summary trial by trial, whatever the planner knows of the tables.

After a vacuum of emptied tables the planner expects one row: it then joined every measurement with every trial of the
tables, once for each trial of a transaction, which took minutes for 300 trials.
"""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("experiments.migrations.0030_excluded_disturbed_trials").WITH_CLEAN
JOINED = "FROM experiments_trial t JOIN experiments_measurement m ON m.trial_id = t.id\n"
# OFFSET keeps the planner from joining in another order.
OF_EACH_TRIAL = """FROM experiments_trial t
    CROSS JOIN LATERAL (SELECT * FROM experiments_measurement WHERE trial_id = t.id OFFSET 0) m
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0033_plain_states")]

    operations = [migrations.RunSQL(BEFORE.replace(JOINED, OF_EACH_TRIAL), BEFORE)]
