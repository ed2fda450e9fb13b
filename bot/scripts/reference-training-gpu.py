"""Measures how fast PEFT trains a LoRA on a GPU over 4-bit weights of bitsandbytes (NF4), as QLoRA does. The model has random
weights in the shape of Qwen3 14B. Examples, rank and batch size are those of `azera hearth train`. Prints seconds per step,
without the first two, and peak memory. `--checkpointed` turns on gradient checkpointing. The script draws its own batches and
pads them to their longest example, as trainers usually do. Embeddings and the last projection stay in bfloat16. TOKENIZER is a
folder with the `tokenizer.json` of the model whose vocabulary the other model uses, so that the examples have as many tokens.

    pip install torch transformers peft bitsandbytes
    python3 bot/scripts/reference-training-gpu.py TOKENIZER lessons.jsonl --checkpointed
"""

import statistics
import sys
import time

import bitsandbytes
import torch
from reference_examples import BATCH, adapted, padded, read_lessons
from tokenizers import Tokenizer
from transformers import Qwen3Config, Qwen3ForCausalLM

STEPS = 12

torch.manual_seed(1)
reader = Tokenizer.from_file(f"{sys.argv[1]}/tokenizer.json")
shape = Qwen3Config(
    vocab_size=151_936,
    hidden_size=5120,
    intermediate_size=17_408,
    num_hidden_layers=40,
    num_attention_heads=40,
    num_key_value_heads=8,
    head_dim=128,
    rms_norm_eps=1e-6,
    rope_theta=1e6,
    tie_word_embeddings=False,
    use_cache=False,
)
torch.set_default_dtype(torch.bfloat16)
with torch.device("meta"):
    model = Qwen3ForCausalLM(shape)
for path, part in list(model.named_modules()):
    if isinstance(part, torch.nn.Linear) and path != "lm_head":
        weights = torch.randn(part.weight.shape, device="cuda", dtype=torch.bfloat16) * 0.02
        small = bitsandbytes.nn.Linear4bit(
            part.in_features, part.out_features, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", device="meta"
        )
        small.weight = bitsandbytes.nn.Params4bit(weights, requires_grad=False, quant_type="nf4").to("cuda")
        owner, _, name = path.rpartition(".")
        setattr(model.get_submodule(owner), name, small)
        del weights
for owner in model.modules():
    for name, weight in list(owner.named_parameters(recurse=False)):
        if weight.is_meta:
            drawn = torch.ones if weight.dim() == 1 else torch.randn
            value = drawn(weight.shape, device="cuda", dtype=torch.bfloat16) * (1.0 if weight.dim() == 1 else 0.02)
            setattr(owner, name, torch.nn.Parameter(value, requires_grad=False))
with torch.device("cuda"):
    model.model.rotary_emb = type(model.model.rotary_emb)(shape)
torch.cuda.empty_cache()
for weight in model.parameters():
    weight.requires_grad_(False)
model = adapted(model, "--checkpointed" in sys.argv)
lessons = read_lessons(sys.argv[2], lambda text: reader.encode(text, add_special_tokens=False).ids)
order = torch.randperm(len(lessons)).tolist()
learned = [weight for weight in model.parameters() if weight.requires_grad]
adam = torch.optim.AdamW(learned, lr=6e-4)
torch.cuda.synchronize()
held = torch.cuda.memory_allocated() / 1e9
torch.cuda.reset_peak_memory_stats()
seconds, tokens = [], []
for step in range(STEPS):
    batch = [lessons[order[(step * BATCH + place) % len(order)]] for place in range(BATCH)]
    began = time.perf_counter()
    read = padded(batch, "cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(**read).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(learned, 1.0)
    adam.step()
    adam.zero_grad()
    torch.cuda.synchronize()
    seconds.append(time.perf_counter() - began)
    tokens.append(sum(len(it) for it, _ in batch))
    print(f"step {step + 1} of {STEPS}: {tokens[-1]} tokens, {seconds[-1]:.2f} s, loss {loss.item():.3f}", file=sys.stderr)
print(
    f"{statistics.median(seconds[2:]):.3f} s a step, {sum(tokens[2:]) / sum(seconds[2:]):.0f} tokens/s, "
    f"{held:.1f} GB of weights, at most {torch.cuda.max_memory_allocated() / 1e9:.1f} GB ({torch.cuda.max_memory_reserved() / 1e9:.1f} reserved)"
)
