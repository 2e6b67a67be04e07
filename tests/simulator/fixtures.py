"""Which scenario is behind which file of tests/fixtures; `scripts/make_fixtures` writes them."""

from __future__ import annotations

FIXTURES = {
    "sim_starved_training.sqlite.gz": "starved_data_parallel",
    "sim_launch_bound.sqlite.gz": "launch_bound",
    "sim_two_gpus.sqlite.gz": "two_gpus",
    "sim_graph_replay.sqlite.gz": "graph_replay",
    "sim_gpu_metrics.sqlite.gz": "counted_training",
}
