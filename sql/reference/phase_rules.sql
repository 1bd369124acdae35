-- Phases of a training step, in the order in which they are asked for. Collectives are taken out before
-- these rules; v1.attribution keeps what the rules say of them as launch_phase.
INSERT INTO main.phase_rules VALUES
    (10, '^rematted_computation$', 'remat',
     'jax.checkpoint replays forward work inside the backward pass'),
    (20, '^(.*[(])?transpose[(].*$', 'backward',
     'transpose of a differentiated computation; a bare transpose is the primitive'),
    (30, '^(.*[(])?jvp[(].*$', 'forward',
     'forward part of a differentiated computation; custom_jvp_call is not one'),
    (40, '^(loss|optimizer|optimizer_update|adam|adamw|apply_updates|gradient_[a-z_]+|grad_accum[a-z_]*)$', 'update',
     'loss, gradient accumulation, clipping and optimizer outside the differentiated computation');
