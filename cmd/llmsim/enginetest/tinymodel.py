# SPDX-License-Identifier: Apache-2.0
"""Writes a Llama of some hundred thousand parameters without its weights: a
config and a tokenizer of whole words, enough for vLLM with --load-format dummy."""

import json
import pathlib
import sys

from tokenizers import Tokenizer, models, pre_tokenizers

VOCABULARY = 512

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True)
(out / "config.json").write_text(json.dumps({
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}))
words = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"w{i}": i for i in range(3, VOCABULARY)}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save(str(out / "tokenizer.json"))
(out / "tokenizer_config.json").write_text(json.dumps({
    "tokenizer_class": "PreTrainedTokenizerFast",
    "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>",
    "model_max_length": 2048,
}))
