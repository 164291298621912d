# Takes the configuration, the dataset and the run folder; leaves the shard plan and the target lists. Writes nothing.
# Only the process that the user started plans: jobs on nodes read neither dataset nor run folder.

import sys

sys.path.insert(0, f"{workflow.basedir}/scripts")

from snakemake.exceptions import WorkflowError
from trajectile.planning.workflow import (
    PLAN,
    Targets,
    begin,
    end,
    prepare,
    say_how_to_go_on,
    worded_as,
)

with worded_as(WorkflowError):
    SETTINGS, RUN = prepare(config, workflow.is_main_process)
    TARGETS = Targets(SETTINGS, RUN)

RUN_FOLDER = str(SETTINGS.folder)
OWED_BATCHES = TARGETS.owed_batches
ALL_BATCHES = TARGETS.all_batches
MANIFEST = TARGETS.manifest
IMAGES = TARGETS.images
IMAGES_TO_CHECK = TARGETS.images_to_check
EXPORTS = TARGETS.exports
reason_for = TARGETS.reason_for


envvars:
    PLAN,


wildcard_constraints:
    shard=TARGETS.shard_pattern,
