-- Segments that are not a named scope of the model: control flow, calls, and einsum equations. Up to JAX 0.4
-- each segment carries the transformations, as in transpose(jvp(while)).
INSERT INTO main.scope_rules (rule_id, vocabulary, priority, pattern, is_structural, reason) VALUES
    (201, 'jax', 1010, '^(.*[(])?p?jit([(].*)?$', TRUE, 'a compiled function, under transformations or not'),
    (202, 'jax', 1020, '^xla_(call|pmap)([(].*[)])?$', TRUE, 'a compiled function'),
    (203, 'jax', 1030, '^main$', TRUE, 'the entry function'),
    (204, 'jax', 1040, '^([A-Za-z_]+[(])*(while|scan|body|cond|branch_[0-9]+_fun)[)]*$', TRUE, 'control flow'),
    (205, 'jax', 1050,
     '^([A-Za-z_]+[(])*(closed_call|core_call|custom_jvp_call|custom_vjp_call|custom_vjp_call_jaxpr|eval_jaxpr|named_call)[)]*$',
     TRUE, 'a call that JAX inlines; closed_call up to 0.10 and eval_jaxpr from 0.11 are the body of a scan'),
    (206, 'jax', 1060, '^([A-Za-z_]+[(])*(checkpoint|remat[0-9]*|rematted_computation)[)]*$', TRUE, 'rematerialization'),
    (207, 'jax', 1070, '^(shard_map|shmap_body|pmap|xmap|smap)([(].*[)])?$', TRUE, 'a mapping over devices'),
    (208, 'jax', 1080, '^.*->.*$', TRUE, 'an einsum equation'),
    (209, 'jax', 1090, '^[A-Za-z]+(,[A-Za-z]+)+$', TRUE, 'the operands of an einsum');
