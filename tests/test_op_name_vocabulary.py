"""Phase, component and group of op_names as JAX, Flax and MaxText write them; all answers are by hand."""

from __future__ import annotations

import pytest

from .op_name_answers import OpNameClass, classes_of

BODY = "jit(train_step)/microbatches/while/body/eval_jaxpr"
LAYER = "while/body/eval_jaxpr/decoder_layer"
BACKWARD = f"{BODY}/transpose(jvp(layers))/while/body/eval_jaxpr/checkpoint"

# op_name -> phase, component, group
ANSWERS: dict[str, tuple[str | None, str | None, str | None]] = {
    # The passes, as JAX 0.11 and 0.12 write them.
    f"{BODY}/jvp(layers)/{LAYER}/moe_block/shard_map/wi_0/ebcd,edf->ebcf/dot_general": (
        "forward", "wi_0", "Expert MLP",
    ),
    f"{BACKWARD}/decoder_layer/moe_block/shard_map/wi_0/ebcd,edf->ebcf/transpose": (
        "backward", "wi_0", "Expert MLP",
    ),
    f"{BACKWARD}/rematted_computation/decoder_layer/moe_block/shard_map/ffn_act/mul": (
        "remat", "ffn_act", "Expert MLP",
    ),
    f"{BODY}/jvp(lm_head)/bsd,dv->bsv/dot_general": ("forward", "lm_head", "LM head"),
    f"{BODY}/jvp(embedding)/jit(_take)/gather": ("forward", "embedding", "Embedding"),
    # Bodies of scans: closed_call up to 0.10, and jit(main) before.
    "jit(f)/jit(main)/jvp(layers)/while/body/closed_call/attention/query/dot_general": (
        "forward", "query", "Attention",
    ),
    "jit(f)/transpose(jvp(layers))/while/body/closed_call/checkpoint/attention/out/dot_general": (
        "backward", "out", "Attention",
    ),
    "jit(f)/jit(main)/while/body/closed_call": (None, None, None),
    # Before 0.5 each segment carried the transformations.
    "jit(f)/jvp(foo)/jvp(while)/jvp(body)/jvp(scan_body)/mul": ("forward", "scan_body", "scan_body"),
    "jit(f)/transpose(jvp(foo))/transpose(jvp(while))/transpose(jvp(body))/mul": ("backward", "foo", "foo"),
    "jit(f)/transpose(jvp(foo))/transpose(jvp(checkpoint))/jvp(rematted_computation)/attention/mul": (
        "remat", "attention", "Attention",
    ),
    # Names of rematerialization.
    "jit(f)/transpose(jvp(mlp))/remat/rematted_computation/mul": ("remat", "mlp", "MLP"),
    "jit(f)/transpose(jvp(mlp))/remat2/mul": ("backward", "mlp", "MLP"),
    "jit(f)/jvp(checkpoint)/attention/mul": ("forward", "attention", "Attention"),
    # Transformations of transformations.
    "jit(f)/transpose(jvp(jvp()))/checkpoint/attention/mul": ("backward", "attention", "Attention"),
    "jit(f)/vmap(transpose(jvp(vmap(jvp()))))/mlp/dot_general": ("backward", "mlp", "MLP"),
    "jit(f)/jvp(vmap(attention))/exp": ("forward", "attention", "Attention"),
    "jit(f)/attention/custom_jvp_call/mul": ("forward", "attention", "Attention"),
    # Primitives and scopes that only look like transformations.
    "jit(f)/jvp(embedding)/transpose": ("forward", "embedding", "Embedding"),
    "jit(f)/my_scope/transpose": (None, "my_scope", "my_scope"),
    # The loss has a bucket of its own, forward, backward and in scopes below.
    f"{BODY}/jvp(loss)/reduce_sum": ("update", "loss", "Loss"),
    f"{BODY}/transpose(jvp(loss))/mul": ("update", "loss", "Loss"),
    f"{BODY}/transpose(jvp(loss))/label_smoothing/mul": ("update", "label_smoothing", "Loss"),
    f"{BODY}/transpose(jvp(final_norm))/mul": ("backward", "final_norm", "Final norm"),
    # Moved out of the differentiated computation.
    f"{BODY}/decoder_layer/attention/rope/cos": ("forward", "rope", "Attention"),
    f"{BODY}/decoder_layer/attention/core_attention/vmap(jit(tril))/ge": (
        "forward", "core_attention", "Attention",
    ),
    f"{BODY}/decoder_layer/moe_block/shard_map/router_masks/jit(_one_hot)/iota": (
        "forward", "router_masks", "Router",
    ),
    # Update.
    "jit(train_step)/gradient_accumulation/mul": (
        "update", "gradient_accumulation", "Gradient accumulation",
    ),
    f"{BODY}/gradient_accumulation/add": ("update", "gradient_accumulation", "Gradient accumulation"),
    "jit(train_step)/gradient_clipping/reduce_sum": ("update", "gradient_clipping", "Gradient clipping"),
    "jit(train_step)/optimizer/adamw/mul": ("update", "adamw", "Optimizer"),
    # Parameters name scopes in the optimizer: still the update.
    "jit(train_step)/optimizer/wi_0/mul": ("update", "wi_0", "Expert MLP"),
    # Loops.
    f"{BODY}/jvp(layers)/while/body/add": ("forward", "layers", "Scanned loop"),
    f"{BODY}/transpose(jvp(layers))/while/body/jit(dynamic_index_in_dim)/dynamic_slice": (
        "backward", "layers", "Scanned loop",
    ),
    f"{BODY}/jvp(layers)/while/body/some_scope/add": ("forward", "some_scope", "some_scope"),
    "jit(train_step)/microbatches/broadcast_in_dim": (None, "microbatches", "Scanned loop"),
    # No name stacks.
    "broadcast.101": (None, None, None),
    "state['mu']['wo']": (None, None, None),
    # MaxText.
    "jit(train_step)/jvp(TransformerLinenPure)/decoder/layers/while/body/self_attention/query/dot": (
        "forward", "query", "Attention",
    ),
    "jit(t)/jvp(Transformer)/decoder/layers/pre_self_attention_layer_norm/mul": (
        "forward", "pre_self_attention_layer_norm", "Pre-attention norm",
    ),
    "jit(t)/jvp(Transformer)/decoder/layers/post_self_attention_layer_norm/mul": (
        "forward", "post_self_attention_layer_norm", "Post-attention norm",
    ),
    "jit(t)/jvp(Transformer)/decoder/layers/MoeBlock_0/gate/dot_general": ("forward", "gate", "Router"),
    "jit(t)/jvp(Transformer)/decoder/layers/MoeBlock_0/wi_1/dot_general": ("forward", "wi_1", "Expert MLP"),
    "jit(t)/jvp(Transformer)/decoder/moe_layers/DeepSeekMoeBlock_0/shared_experts/wi_0/dot": (
        "forward", "wi_0", "Shared expert",
    ),
    "jit(t)/jvp(Transformer)/decoder/dense_layers/mlp/wi_0/dot_general": ("forward", "wi_0", "MLP"),
    "jit(t)/jvp(Transformer)/decoder/layers/MoeBlock_0/reshape": ("forward", "MoeBlock_0", "MoE"),
    "jit(t)/jvp(Transformer)/decoder/decoder_norm/mul": ("forward", "decoder_norm", "Final norm"),
    "jit(t)/jvp(Transformer)/decoder/logits_dense/dot_general": ("forward", "logits_dense", "LM head"),
    "jit(t)/jvp(Transformer)/token_embedder/gather": ("forward", "token_embedder", "Embedding"),
    "jit(t)/jvp(Transformer)/token_embedder.attend/dot_general": (
        "forward", "token_embedder.attend", "LM head",
    ),
    # Flax: methods of modules, and numbered instances, which group without their number.
    "jit(f)/jvp(Transformer.decode)/add": ("forward", "Transformer.decode", "Model"),
    "jit(f)/jvp(CNN)/Dense_0/dot_general": ("forward", "Dense_0", "Dense"),
    "jit(f)/jvp(CNN)/Conv_12/conv_general_dilated": ("forward", "Conv_12", "Conv"),
    "jit(f)/jvp(ViT)/layers_0/MlpBlock_0/Dense_1/dot_general": ("forward", "Dense_1", "MLP"),
    "jit(f)/jvp(ViT)/layers_11/MultiHeadDotProductAttention_0/query/dot_general": (
        "forward", "query", "Attention",
    ),
    "jit(f)/jvp(ViT)/layers_11/add": ("forward", "layers_11", "Decoder layer"),
    "jit(f)/transpose(jvp(ViT))/layers_3/LayerNorm_1/mul": ("backward", "LayerNorm_1", "Norm"),
    "jit(f)/jvp(CNN)/encoder.pool/reduce_max": ("forward", "encoder.pool", "Model"),
    "jit(f)/jvp(CNN)/stem.pool/reduce_max": ("forward", "stem.pool", "stem"),
    "jit(f)/jvp(olmax.nn.Block)/add": ("forward", "olmax.nn.Block", "olmax.nn.Block"),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers() -> dict[str, OpNameClass]:
    return classes_of([*ANSWERS, *JOINED])


@pytest.mark.parametrize("op_name", ANSWERS)
def test_class(answers: dict[str, OpNameClass], op_name: str) -> None:
    assert answers[op_name] == OpNameClass(*ANSWERS[op_name], is_mixed=False)


# What a compiler pass joins: phase, component, group, is_mixed.
JOINED: dict[str, tuple[str | None, str | None, str | None, bool]] = {
    # The combiner of collectives over the whole step.
    f"{BODY}/(transpose(jvp(final_norm))/reduce_sum:transpose(jvp(lm_head))/dot_general:jvp(loss)/sum)": (
        None, "microbatches", "microbatches", True,
    ),
    # In one scope, for parts of it.
    f"{BACKWARD}/decoder_layer/attention/(key/transpose:out/transpose:query/transpose)": (
        "backward", "attention", "Attention", True,
    ),
    # Parts of one group.
    f"{BODY}/jvp(layers)/while/body/(attention/query/convert:attention/key/convert)": (
        "forward", "attention", "Attention", True,
    ),
    # A replayed gather with one whose component is lost: the phases differ.
    f"{BODY}/transpose(jvp(layers))/while/body/(jit(dynamic_index_in_dim)/dynamic_slice:eval_jaxpr/checkpoint"
    "/rematted_computation/decoder_layer/attention/out/convert)": (None, "layers", "layers", True),
    # Twice the same says one thing.
    "a/vmap(BNTS,BSNH->BTNH)/transpose;a/vmap()/transpose": (None, "a", "a", False),
    "jit(f)/jvp(mlp)/add;jit(f)/jvp(mlp)/mul": ("forward", "mlp", "MLP", False),
    "jit(f)/jvp(mlp)/add;jit(f)/transpose(jvp(mlp))/mul": (None, "mlp", "MLP", True),
    "jit(f)/jvp(mlp)/add;jit(f)/jvp(attention)/mul": ("forward", None, None, True),
    # One has a phase, the other not.
    "jit(f)/jvp(x)/add;jit(f)/x/mul": (None, "x", "x", True),
}  # fmt: skip


@pytest.mark.parametrize("op_name", JOINED)
def test_joined_class(answers: dict[str, OpNameClass], op_name: str) -> None:
    assert answers[op_name] == OpNameClass(*JOINED[op_name])
