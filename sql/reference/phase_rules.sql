-- Phases of a training step, in the order in which they are asked for. Collectives are taken out before
-- these rules; v1.attribution keeps what the rules say of them as launch_phase.
-- Rules that a user adds have priority 100 unless told otherwise: before these.
INSERT INTO main.phase_rules (rule_id, vocabulary, priority, pattern, phase, reason) VALUES
    (101, 'jax', 1010, '^([A-Za-z_]+[(])*rematted_computation[)]*$', 'remat',
     'jax.checkpoint replays forward work inside the backward pass'),
    (102, 'jax', 1020, '^(.*[(])?transpose[(].*$', 'backward',
     'transpose of a differentiated computation; a bare transpose is the primitive'),
    (103, 'jax', 1030, '^(.*[(])?jvp[(].*$', 'forward',
     'forward part of a differentiated computation; custom_jvp_call is not one'),
    (104, 'jax', 1040,
     '^(loss|optimizer|optimizer_update|sgd|adam|adamw|adafactor|lion|muon|apply_updates|apply_gradients|gradient_[a-z_]+|grad_accum[a-z_]*|grad_clip[a-z_]*|clip_by_global_norm)$',
     'update',
     'loss, gradient accumulation, clipping and optimizer outside the differentiated computation');
