"""The critical path of the judged steps: what has to be shorter for a step to be shorter."""
