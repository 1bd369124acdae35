"""Programs that record themselves with tracewh.record, for the tests of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# A step on two devices that communicates, recorded as a user would; it prints what JAX itself told of it.
TRAIN = """
import json
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import tracewh


@dataclass
class Config:
    width: int = 64
    batch: int = 32
    dtype: object = jnp.float32
    hf_token: str = "s3cret"
    services: dict = field(default_factory=lambda: {"wandb": {"api_key": "s3cret"}, "url": None})


config = Config()
mesh = Mesh(np.array(jax.devices()), ("data",))
weights = jax.device_put(jnp.full((config.width, config.width), 0.01), NamedSharding(mesh, P()))
batch = jax.device_put(jnp.ones((config.batch, config.width)), NamedSharding(mesh, P("data")))


def train_step(weights, batch):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(batch @ w) - 1) ** 2))(weights)
    return weights - 0.1 * gradient, loss


compiled = jax.jit(train_step, donate_argnums=0).lower(weights, batch).compile()
weights, seconds = tracewh.time_steps(
    "runs/mine", lambda w: compiled(w, batch)[0], weights, steps=5, warmup=1
)
with tracewh.record("runs/mine", compiled=compiled, config=config, mesh=mesh) as recorder:
    for number in range(10, 13):
        with recorder.step(number):
            weights, loss = recorder.wait(compiled(weights, batch))

memory = compiled.memory_analysis()
print(json.dumps({
    "seconds": seconds,
    "flops": compiled.cost_analysis()["flops"],
    "argument_bytes": memory.argument_size_in_bytes,
    "output_bytes": memory.output_size_in_bytes,
    "temporary_bytes": memory.temp_size_in_bytes,
    "jax": jax.__version__,
    "parameter_bytes": [weights.nbytes, batch.nbytes // 2],
    "buffer_assignment": memory.serialized_buffer_assignment_proto.hex(),
}))
"""


def readme_example() -> str:
    """The program of the README's section on recording."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^## Record a run\n.*?^```python\n(.*?)^```\n", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def git(folder: Path, *arguments: str) -> str:
    """What git writes, as a user without any configuration."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit_program(folder: Path, program: str) -> str:
    """A new repository with the program as `train.py`; returns the commit."""
    folder.mkdir()
    (folder / "train.py").write_text(program, encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "add", "train.py")
    git(folder, "commit", "--quiet", "-m", "train")
    return git(folder, "rev-parse", "HEAD")


def run_program(folder: Path, *xla_flags: str) -> str:
    """Run `train.py` of a repository on the CPU, any warning of Python an error; returns what it prints."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": " ".join(xla_flags)}
    command = [sys.executable, "-W", "error", "train.py", "--hf_token", "s3cret"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
