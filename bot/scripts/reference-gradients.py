"""Writes the fixtures that the trainer's tests compare gradients with: PEFT's, for small models with every part.

    pip install torch transformers peft gguf
    python3 bot/scripts/reference-gradients.py bot/models/training/fixtures

Writes three files for each architecture: the model, a LoRA, and PEFT's gradients of the summed loss of some tokens, as a
LoRA file of the same shape. Its metadata holds the tokens and the loss.
"""

import sys
from pathlib import Path

import torch
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import dequantize, quantize
from peft import LoraConfig, get_peft_model
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

LAYERS, WIDTH, HEADS, KV_HEADS, INNER, VOCABULARY = 2, 32, 4, 2, 64, 50
RANK, ALPHA = 4, 8.0
FIRST_LEARNT, TOKENS = 12, 30
EPSILON, BASE = 1e-5, 10_000.0

# Names of the projections in transformers and in GGUF.
PROJECTIONS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def interleaved(rows, heads):
    """Returns a projection's rows in GGUF's order for llama: the two halves that rotate together are interleaved."""
    parts = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return parts.swapaxes(1, 2).reshape(rows.shape)


def as_stored(architecture, part, rows):
    if architecture == "llama" and part in ("attn_q", "attn_k"):
        return interleaved(rows, HEADS if part == "attn_q" else KV_HEADS)
    return rows


def model_of(architecture):
    sizes = dict(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=16 if architecture == "qwen3" else WIDTH // HEADS,
        rms_norm_eps=EPSILON,
        rope_theta=BASE,
        max_position_embeddings=128,
        tie_word_embeddings=True,
    )
    if architecture == "qwen2":
        return Qwen2ForCausalLM(Qwen2Config(**sizes))
    if architecture == "qwen3":
        return Qwen3ForCausalLM(Qwen3Config(**sizes))
    return LlamaForCausalLM(LlamaConfig(**sizes))


def write_model(path, architecture, model):
    """Writes the model file, and gives the model the file's 8-bit weights."""
    config = model.config
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    # As in the published files, those of qwen2 leave these out.
    if architecture != "qwen2":
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
        writer.add_rope_dimension_count(config.head_dim)
    writer.add_context_length(128)
    writer.add_vocab_size(VOCABULARY)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_freq_base(BASE)
    writer.add_tokenizer_model("no_vocab")
    kind = GGMLQuantizationType.Q8_0

    def matrix(name, weight, part=None):
        rows = as_stored(architecture, part, weight.detach().numpy())
        stored = quantize(rows, kind)
        writer.add_tensor(name, stored, raw_dtype=kind)
        # The model gets the weights back in its own row order.
        plain = quantize(weight.detach().numpy(), kind)
        weight.data = torch.from_numpy(dequantize(plain, kind).copy())

    def vector(name, weight):
        writer.add_tensor(name, weight.detach().numpy())

    matrix("token_embd.weight", model.model.embed_tokens.weight)
    vector("output_norm.weight", model.model.norm.weight)
    for index, layer in enumerate(model.model.layers):
        for theirs, ours in PROJECTIONS.items():
            matrix(f"blk.{index}.{ours}.weight", layer.get_submodule(theirs).weight, ours)
        vector(f"blk.{index}.attn_norm.weight", layer.input_layernorm.weight)
        vector(f"blk.{index}.ffn_norm.weight", layer.post_attention_layernorm.weight)
        if architecture == "qwen2":
            for theirs in ("q_proj", "k_proj", "v_proj"):
                vector(f"blk.{index}.attn_{theirs[0]}.bias", layer.self_attn.get_submodule(theirs).bias)
        if architecture == "qwen3":
            vector(f"blk.{index}.attn_q_norm.weight", layer.self_attn.q_norm.weight)
            vector(f"blk.{index}.attn_k_norm.weight", layer.self_attn.k_norm.weight)
    model.tie_weights()
    finish(writer)


def write_adapter(path, architecture, of, notes):
    writer = GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", ALPHA)
    for key, text in notes.items():
        writer.add_string(key, text)
    for index in range(LAYERS):
        for theirs, ours in PROJECTIONS.items():
            a, b = of(index, theirs)
            writer.add_tensor(f"blk.{index}.{ours}.weight.lora_a", a)
            writer.add_tensor(f"blk.{index}.{ours}.weight.lora_b", as_stored(architecture, ours, b).copy())
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for architecture in ("llama", "qwen2", "qwen3"):
    torch.manual_seed(7)
    model = model_of(architecture)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            by = 0.3 if weight.dim() == 1 else 1.7 / weight.shape[1] ** 0.5
            weight.copy_((1.0 if weight.dim() == 1 else 0.0) + (torch.rand_like(weight) * 2 - 1) * by)
    write_model(folder / f"{architecture}.gguf", architecture, model)
    targets = [name.split(".")[1] for name in PROJECTIONS]
    model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets, task_type="CAUSAL_LM"))
    layers = model.base_model.model.model.layers

    def pair(index, name):
        low = layers[index].get_submodule(name)
        return low.lora_A["default"].weight, low.lora_B["default"].weight

    with torch.no_grad():
        for index in range(LAYERS):
            for name in PROJECTIONS:
                a, b = pair(index, name)
                a.copy_((torch.rand_like(a) * 2 - 1) * (3 / a.shape[1]) ** 0.5)
                b.copy_((torch.rand_like(b) - 0.5) * 0.2)
    of = lambda index, name: [weight.detach().numpy() for weight in pair(index, name)]
    write_adapter(folder / f"{architecture}-adapter.gguf", architecture, of, {})
    tokens = torch.randint(0, VOCABULARY, (1, TOKENS))
    logits = model(input_ids=tokens).logits[0, FIRST_LEARNT - 1 : -1]
    loss = torch.nn.functional.cross_entropy(logits, tokens[0, FIRST_LEARNT:], reduction="sum")
    loss.backward()
    notes = {
        "tokens": " ".join(str(token) for token in tokens[0].tolist()),
        "first_learnt": str(FIRST_LEARNT),
        "loss": repr(loss.item()),
    }
    of = lambda index, name: [weight.grad.numpy() for weight in pair(index, name)]
    write_adapter(folder / f"{architecture}-gradients.gguf", architecture, of, notes)
    print(f"{architecture}: loss {loss.item():.4f}")
