-- Boxes of a model's map that are told together where a table is to be short. A group that is not named here is a
-- family of its own.
INSERT INTO main.component_families (component_group, component_family) VALUES
    ('Router', 'MoE'),
    ('Dispatch', 'MoE'),
    ('Expert MLP', 'MoE'),
    ('Combine', 'MoE'),
    ('Shared expert', 'MoE'),
    ('Pre-attention norm', 'Layer norms'),
    ('Post-attention norm', 'Layer norms'),
    ('Norm', 'Layer norms');
