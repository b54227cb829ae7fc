"""The text of a small pipeline, for tests that write pipeline files."""

SPEC = """\
name: {name}
data: {{source: digits}}
model:
  entrypoint: training.models.mlp
  params: {{hidden: [16]}}
train: {{engine: tensorflow, strategy: multi_worker_mirrored, epochs: 3, batch_size: 64}}
cluster: {{workers: 2}}
"""
