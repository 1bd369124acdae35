"""A small model whose operations tell where in it they were written, whatever their op_name says.

Every dimension has a size of its own, so that the operands and the result of a product tell which matrix it
is about, and whether it is of the pass forward or a gradient. The layer is checkpointed and scanned: the loop
that makes gradients of its matrices is the one backward, and what is not a gradient in there is the replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BATCH, WIDTH, HIDDEN, MIDDLE, VOCABULARY, LAYERS = 3, 5, 7, 13, 11, 2
# Of each matrix, the size of what it makes.
_OUTPUTS = {
    frozenset((WIDTH, HIDDEN)): ("up", HIDDEN),
    frozenset((HIDDEN, MIDDLE)): ("mix", MIDDLE),
    frozenset((MIDDLE, WIDTH)): ("down", WIDTH),
    frozenset((WIDTH, VOCABULARY)): ("head", VOCABULARY),
}


def module_proto() -> bytes:
    """The serialized optimized HLO of a training step."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    scope = jax.named_scope

    def layer(x: Any, weights: Any) -> Any:
        up, mix, down = weights
        with scope("block"):
            with scope("up"):
                hidden = x @ up
            with scope("act"):
                hidden = jnp.tanh(hidden)
            with scope("mix"):
                middle = jnp.tanh(hidden @ mix)
            with scope("down"):
                return middle @ down, None

    def loss(params: Any, tokens: Any) -> Any:
        with scope("embedding"):
            x = params["table"][tokens]
        with scope("layers"):
            body = jax.checkpoint(layer, prevent_cse=False)
            x, _ = lax.scan(body, x, (params["up"], params["mix"], params["down"]))
        with scope("head"):
            logits = x @ params["head"]
        with scope("loss"):
            return jnp.mean(jnp.log(1 + logits * logits))

    def step(params: Any, tokens: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens)
        with scope("optimizer"):
            return value, jax.tree.map(lambda p, g: p - g / jnp.sqrt(1 + g * g), params, grads)

    params = {
        "table": jnp.zeros((VOCABULARY + 2, WIDTH)),
        "up": jnp.zeros((LAYERS, WIDTH, HIDDEN)),
        "mix": jnp.zeros((LAYERS, HIDDEN, MIDDLE)),
        "down": jnp.zeros((LAYERS, MIDDLE, WIDTH)),
        "head": jnp.zeros((WIDTH, VOCABULARY)),
    }
    compiled = jax.jit(step).lower(params, jnp.zeros(BATCH, jnp.int32)).compile()
    module = compiled.runtime_executable().hlo_modules()[0]
    serialized: bytes = module.as_serialized_hlo_module_proto()
    return serialized


def written_positions(module: Any) -> Iterator[tuple[str, str, str]]:
    """op_name, phase and component of each operation of a HloModuleProto that tells where it was written."""
    from tracewh.ingest.hlo_proto import ShapeProto

    # A fused computation is part of the one that calls it.
    callers = {
        called: computation.id
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode in (b"fusion", b"call")
        for called in instruction.called_computation_ids
    }
    products: list[tuple[int, str, str, str]] = []
    for computation in module.computations:
        place = computation.id
        while place in callers:
            place = callers[place]
        sizes = {
            instruction.id: frozenset(ShapeProto.FromString(instruction.shape).dimensions) - {1}
            for instruction in computation.instructions
        }
        for instruction in computation.instructions:
            op_name = instruction.metadata.op_name.decode()
            if instruction.opcode == b"dot":
                written = _product(sizes[instruction.id], [sizes[i] for i in instruction.operand_ids])
                products.append((place, op_name, *written))
            elif instruction.opcode in _SIMPLE:
                yield op_name, *_SIMPLE[instruction.opcode]
    backward = {
        place
        for place, _, phase, component in products
        if phase == "backward" and component in ("up", "mix", "down")
    }
    for place, op_name, phase, component in products:
        yield op_name, "remat" if place in backward and phase == "forward" else phase, component


_SIMPLE = {
    b"gather": ("forward", "embedding"),
    b"scatter": ("backward", "embedding"),
    b"log": ("update", "loss"),
    b"sqrt": ("update", "optimizer"),
    b"rsqrt": ("update", "optimizer"),
}


def _product(result: frozenset[int], operands: list[frozenset[int]]) -> tuple[str, str]:
    matrix = next((operand for operand in operands if BATCH not in operand), None)
    if matrix is None:
        return "backward", _OUTPUTS[result][0]
    component, output = _OUTPUTS[matrix]
    return "forward" if output in result else "backward", component
