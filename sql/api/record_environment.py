"""What a run ran on and with: versions, devices, mesh, flags, commit."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tracewh import __version__
from tracewh.sql.git_state import git_has_changes, git_head

# Packages whose version can change what is compiled, or how fast it runs.
_PACKAGES = re.compile(
    r"(jax|nvidia|rocm|libtpu|flax|optax|orbax|maxtext|transformer.?engine|triton|tokamax|qwix)",
    re.IGNORECASE,
)
_FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")


def environment(mesh: Any | None = None) -> dict[str, Any]:
    """Versions, devices, and the axes of a mesh, as an object of JSON."""
    devices = jax.devices()
    described: dict[str, Any] = {
        "tracewh": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": metadata.version("jaxlib"),
        "numpy": np.__version__,
        "packages": _packages(),
        "platform": devices[0].platform,
        "platform_version": getattr(devices[0].client, "platform_version", None),
        "device_kinds": dict(Counter(device.device_kind for device in devices)),
        "device_count": len(devices),
        "local_device_count": jax.local_device_count(),
        "hostname": platform.node(),
        "argv": list(sys.argv),
    }
    described |= {flag.lower(): os.environ[flag] for flag in _FLAGS if flag in os.environ}
    if mesh is not None:
        described["mesh"] = {str(axis): int(size) for axis, size in mesh.shape.items()}
    return described


def _packages() -> dict[str, str]:
    found = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name and _PACKAGES.match(name):
            found[name.lower()] = distribution.version
    return dict(sorted(found.items()))


def commit(repository: str | os.PathLike[str] | None, errors: dict[str, str]) -> dict[str, Any]:
    """The commit that runs, and whether tracked files differ from it: `commit`, `git_has_changes`.

    Without a `repository` it is the checkout of the program's main script, else of the working directory.
    What keeps git from telling is noted in `errors`.
    """
    folders = [Path(repository)] if repository is not None else _own_folders()
    for folder in folders:
        sha = git_head(folder)
        if sha is not None:
            return {"commit": sha, "git_has_changes": git_has_changes(folder)}
    errors["commit"] = f"git tells no commit for {', '.join(map(str, folders))}"
    return {}


def _own_folders() -> list[Path]:
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    folders = [Path(script).absolute().parent] if script else []
    return list(dict.fromkeys([*folders, Path.cwd()]))
