-- Segments that are not a named scope of the model: control flow, calls, and einsum equations.
INSERT INTO main.scope_rules VALUES
    ('^(.*[(])?p?jit([(].*)?$', 'a compiled function, under transformations or not'),
    ('^xla_(call|pmap)([(].*[)])?$', 'a compiled function'),
    ('^main$', 'the entry function'),
    ('^(while|scan|body|cond|branch_[0-9]+_fun)$', 'control flow'),
    ('^(closed_call|core_call|custom_jvp_call|custom_vjp_call|custom_vjp_call_jaxpr|eval_jaxpr|named_call)$',
     'a call that JAX inlines'),
    ('^(checkpoint|remat[0-9]*|rematted_computation)$', 'rematerialization'),
    ('^(shard_map|pmap|xmap|smap)([(].*[)])?$', 'a mapping over devices'),
    ('^.*->.*$', 'an einsum equation'),
    ('^[A-Za-z]+(,[A-Za-z]+)+$', 'the operands of an einsum');
