"""Which rule gives the cost of an HLO opcode."""

from __future__ import annotations

_TRANSCENDENTAL = (
    "acos acosh asin asinh atan2 atanh cbrt cosh cosine erf exp2 exponential exponential-minus-one"
    " log log-plus-one log2 logistic power rsqrt sine sinh sqrt tan tanh"
)
_OTHER_ELEMENTWISE = (
    "abs add and bitcast-convert ceil clamp compare complex convert count-leading-zeros divide floor imag"
    " is-finite maximum minimum mulhi multiply negate not or popcnt real reduce-precision remainder"
    " round-nearest-afz round-nearest-even select shift-left shift-right-arithmetic shift-right-logical sign"
    " stochastic-convert subtract xor"
)
_OPCODES = {
    "elementwise": f"{_TRANSCENDENTAL} {_OTHER_ELEMENTWISE}",
    "dot": "dot scaled-dot",
    "ragged_dot": "ragged-dot",
    "convolution": "convolution",
    "reduce": "reduce",
    "reduce_window": "reduce-window",
    "select_and_scatter": "select-and-scatter",
    "map": "map",
    "scan": "scan",
    "sort": "sort",
    "fft": "fft",
    "cholesky": "cholesky",
    "triangular_solve": "triangular-solve",
    "random": "rng rng-bit-generator",
    "gather": "gather",
    "scatter": "scatter",
    "fusion": "fusion",
    "custom_call": "custom-call",
    "data_movement": (
        "broadcast concatenate copy copy-done copy-start dynamic-reshape dynamic-slice dynamic-update-slice"
        " get-dimension-size infeed iota opt-barrier outfeed pad partition-id replica-id reshape reverse"
        " rng-get-and-update-state set-dimension-size shuffle slice transpose tuple"
    ),
    "collective": (
        "all-gather all-gather-done all-gather-start all-reduce all-reduce-done all-reduce-start all-to-all"
        " collective-broadcast collective-permute collective-permute-done collective-permute-start"
        " collective-reduce ragged-all-to-all recv recv-done reduce-scatter send send-done"
    ),
    # What these run is counted where it stands: in the computations that they call.
    "control_flow": "async-done async-start async-update call conditional while",
    # Neither work nor memory traffic.
    "no_work": "add-dependency after-all bitcast constant domain get-tuple-element parameter",
    # XLA counts the memory traffic of these, and leaves their arithmetic out.
    "traffic_only": "batch-norm-grad batch-norm-inference batch-norm-training topk",
}

RULE_BY_OPCODE: dict[bytes, str] = {
    opcode.encode(): rule for rule, opcodes in _OPCODES.items() for opcode in opcodes.split()
}
TRANSCENDENTAL_OPCODES = frozenset(opcode.encode() for opcode in _TRANSCENDENTAL.split())
