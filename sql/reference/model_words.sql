-- Words of configurations. A gated MLP has three matrices, a plain one two. Decoder blocks are MaxText's: some
-- alternate layers with a window and without one, some give experts a width of their own, and of some the parts are
-- not those that the formulas know.
INSERT INTO main.model_words (dimension, word, meaning) VALUES
    ('dtype', 'bfloat16', 'bf16'), ('dtype', 'bf16', 'bf16'), ('dtype', 'torch.bfloat16', 'bf16'),
    ('dtype', 'float16', 'fp16'), ('dtype', 'fp16', 'fp16'), ('dtype', 'f16', 'fp16'), ('dtype', 'half', 'fp16'),
    ('dtype', 'torch.float16', 'fp16'),
    ('dtype', 'float32', 'fp32'), ('dtype', 'fp32', 'fp32'), ('dtype', 'f32', 'fp32'), ('dtype', 'torch.float32', 'fp32'),
    ('dtype', 'tf32', 'tf32'), ('dtype', 'float64', 'fp64'), ('dtype', 'f64', 'fp64'),
    ('dtype', 'fp8', 'fp8'), ('dtype', 'fp8_full', 'fp8'), ('dtype', 'fp8_gpu', 'fp8'), ('dtype', 'nanoo_fp8', 'fp8'),
    ('dtype', 'te_fp8_delayedscaling', 'fp8'), ('dtype', 'te_fp8_currentscaling', 'fp8'), ('dtype', 'aqt_fp8', 'fp8'),
    ('dtype', 'float8_e4m3fn', 'fp8'), ('dtype', 'float8_e4m3fnuz', 'fp8'), ('dtype', 'float8_e5m2', 'fp8'),
    ('dtype', 'int8', 'int8'), ('dtype', 's8', 'int8'),
    ('activation_matrices', 'swiglu', '3'), ('activation_matrices', 'geglu', '3'), ('activation_matrices', 'reglu', '3'),
    ('activation_matrices', 'glu', '3'), ('activation_matrices', 'silu', '3'), ('activation_matrices', 'swish', '3'),
    ('activation_matrices', 'gelu', '2'), ('activation_matrices', 'gelu_new', '2'), ('activation_matrices', 'relu', '2'),
    ('activation_matrices', 'relu2', '2'), ('activation_matrices', 'squared_relu', '2'),
    ('attention_keys', 'global', 'causal'), ('attention_keys', 'local_sliding', 'window'), ('attention_keys', 'full', 'all'),
    ('attention_keys', 'causal', 'causal'), ('attention_keys', 'sliding', 'window'),
    ('window_period', 'gemma2', '2'), ('window_period', 'gemma3', '6'), ('window_period', 'gpt_oss', '2'),
    ('own_expert_width', 'deepseek', 'true'), ('own_expert_width', 'qwen2_moe', 'true'),
    ('own_expert_width', 'qwen3_moe', 'true'),
    ('not_modelled', 'deepseek_v2', 'latent attention'), ('not_modelled', 'deepseek_v3', 'latent attention'),
    ('not_modelled', 'llama4', 'chunked attention'), ('not_modelled', 'qwen3_next', 'linear attention'),
    ('not_modelled', 'mla', 'latent attention'), ('not_modelled', 'chunk', 'chunked attention'),
    ('truth', 'true', 'true'), ('truth', 'True', 'true'), ('truth', '1', 'true'),
    ('truth', 'false', 'false'), ('truth', 'False', 'false'), ('truth', '0', 'false');
