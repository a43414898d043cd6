"""PipelineDP's partition selections on exact numbers of people; runs in its own environment, from stdin to stdout."""

from __future__ import annotations

import json
import sys

from pipeline_dp.aggregate_params import PartitionSelectionStrategy
from pipeline_dp.partition_selection import create_partition_selection_strategy

given = json.load(sys.stdin)
kept = {}
for strategy in PartitionSelectionStrategy:
    chooser = create_partition_selection_strategy(strategy, given["epsilon"], given["delta"], given["each"], None)
    large = [count for count in given["counts"] if count > 1]
    kept[strategy.name] = [sum(map(chooser.should_keep, large)) for _ in range(given["runs"])]
json.dump(kept, sys.stdout)
