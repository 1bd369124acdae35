"""Program that compiles and runs collectives on eight CPU devices and prints what they did, as JSON.

A process of its own, because the number of CPU devices is fixed when JAX starts. Each line has a compiled
module and the truth about it: `groups` and `pairs` by the mesh of a JAX program, or what devices `gathered`.
"""

from __future__ import annotations

import base64
import json
import os
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxlib import _jax

ROWS, COLUMNS = 16, 3

# Every device gathers the numbers of the devices of its group.
GATHER = """
module @gather {{
  sdy.mesh @mesh = <[{mesh}]{order}>
  func.func @main() -> tensor<{size}xui32> {{
    %0 = stablehlo.replica_id : tensor<ui32>
    %1 = stablehlo.reshape %0 : (tensor<ui32>) -> tensor<1xui32>
    %2 = "stablehlo.all_gather"(%1) <{{
        all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
        replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [{axes}]>,
        use_global_device_ids}}> : (tensor<1xui32>) -> tensor<{size}xui32>
    return %2 : tensor<{size}xui32>
  }}
}}
"""
SCATTERED = [3, 1, 0, 2, 5, 4, 7, 6]
TRANSPOSED = [0, 4, 1, 5, 2, 6, 3, 7]
X, Y, Z = ({"name": name} for name in "xyz")


def part(before: int, size: int) -> dict[str, str]:
    return {"name": "x", "sub_axis_info": f"({before}){size}"}


GATHERED: list[tuple[dict[str, int], list[int], list[dict[str, str]], int]] = [
    ({"x": 4, "y": 2}, [], [X], 4),
    ({"x": 4, "y": 2}, [], [Y], 2),
    ({"x": 4, "y": 2}, [], [Y, X], 8),
    ({"x": 4, "y": 2}, TRANSPOSED, [X], 4),
    ({"x": 4, "y": 2}, SCATTERED, [X], 4),
    ({"x": 4, "y": 2}, SCATTERED, [Y], 2),
    ({"x": 2, "y": 2, "z": 2}, TRANSPOSED, [Z, X], 4),
    ({"x": 8}, [], [part(1, 2)], 2),
    ({"x": 8}, [], [part(2, 2)], 2),
    ({"x": 8}, [], [part(4, 2)], 2),
    ({"x": 8}, [], [part(1, 4)], 4),
    ({"x": 8}, [], [part(4, 2), part(1, 2)], 4),
    ({"x": 8}, SCATTERED, [part(4, 2), part(1, 2)], 4),
    ({"y": 2, "x": 4}, SCATTERED, [part(2, 2), Y], 4),
]


def report(compiled_module: Any, **truth: Any) -> None:
    module = base64.b64encode(compiled_module.as_serialized_hlo_module_proto()).decode()
    print(json.dumps({"module": module, **truth}))


def run_gather(mesh: dict[str, int], order: list[int], axes: list[dict[str, str]], size: int) -> None:
    """Print the module with what it gathered: the group of each device, without repetitions."""
    references = [
        f'#stablehlo.axis_ref<name = "{axis["name"]}"'
        + (f", sub_axis_info = {axis['sub_axis_info']}>" if "sub_axis_info" in axis else ">")
        for axis in axes
    ]
    program = GATHER.format(
        mesh=", ".join(f'"{name}"={count}' for name, count in mesh.items()),
        order=f", device_ids={order}" if order else "",
        axes=", ".join(references),
        size=size,
    )
    devices = jax.devices()
    options = _jax.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = len(devices)
    options.num_partitions = build.num_partitions = 1
    build.device_assignment = _jax.DeviceAssignment.create(np.arange(len(devices)).reshape(-1, 1))
    executable = devices[0].client.compile_and_load(program, _jax.DeviceList(tuple(devices)), options)
    (gathered,) = executable.execute_sharded([]).disassemble_into_single_device_arrays()
    groups = dict.fromkeys(tuple(np.asarray(array).tolist()) for array in gathered)
    report(executable.hlo_modules()[0], gathered=list(groups))


def run_mesh_program(mesh: Mesh, axes: tuple[str, ...]) -> None:
    """Print a module with all kinds of collectives along `axes`, and which devices of the mesh those join."""
    size = int(np.prod([mesh.shape[axis] for axis in axes]))

    def program(rows: Any) -> Any:
        reduced = jax.lax.psum(rows, axes)
        gathered = jax.lax.all_gather(rows, axes)
        scattered = jax.lax.psum_scatter(rows, axes, tiled=True)
        exchanged = jax.lax.all_to_all(rows, axes, 0, 0, tiled=True)
        passed = jax.lax.ppermute(rows, axes, [(i, (i + 1) % size) for i in range(size)])
        return reduced.sum() + gathered.sum() + scattered.sum() + exchanged + passed

    everywhere = PartitionSpec(("x", "y"))
    mapped = jax.shard_map(program, mesh=mesh, in_specs=everywhere, out_specs=everywhere)
    inputs = jnp.zeros((8 * ROWS, COLUMNS), jnp.float32)
    compiled = jax.jit(mapped).lower(inputs).compile()
    # The partition of a device is its place in the mesh.
    places = np.arange(8).reshape(4, 2)
    groups = {("x",): places.T, ("y",): places, ("x", "y"): places.reshape(1, 8)}[axes].tolist()
    pairs = [
        [source, target]
        for group in groups
        for source, target in zip(group, group[1:] + group[:1], strict=True)
    ]
    report(compiled.runtime_executable().hlo_modules()[0], groups=groups, pairs=pairs)


def main() -> None:
    devices = np.array(jax.devices())
    for order in (range(8), SCATTERED):
        mesh = Mesh(devices[list(order)].reshape(4, 2), ("x", "y"))
        for axes in (("x",), ("y",), ("x", "y")):
            run_mesh_program(mesh, axes)
    for case in GATHERED:
        try:
            run_gather(*case)
        except RuntimeError as error:
            # Meshes in StableHLO are young.
            print(json.dumps({"unsupported": str(error)}))


if __name__ == "__main__":
    main()
