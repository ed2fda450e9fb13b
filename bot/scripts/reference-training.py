"""Measures how fast PEFT trains the LoRA of `azera hearth train`: the same model file (with its weights dequantized), examples,
rank, batch size and threads, with or without gradient checkpointing. Prints seconds per step, without the first two.

    pip install torch transformers peft gguf
    azera hearth curriculum --seed 1 --count 4000 lessons.jsonl
    python3 bot/scripts/reference-training.py ~/.cache/azera/models/smollm2-135m/model.gguf lessons.jsonl
    azera hearth train lessons.jsonl --out peer.gguf --steps 12 --anew
"""

import os
import resource
import statistics
import sys
import time

import torch
from reference_examples import BATCH, adapted, padded, read_lessons
from transformers import AutoModelForCausalLM, AutoTokenizer

STEPS = 12
THREADS = 2

torch.set_num_threads(THREADS)
torch.manual_seed(1)
folder, file = os.path.split(os.path.abspath(sys.argv[1]))
reader = AutoTokenizer.from_pretrained(folder, gguf_file=file)
model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, torch_dtype=torch.float32)
model = adapted(model, "--checkpointed" in sys.argv)
lessons = read_lessons(sys.argv[2], lambda text: reader(text, add_special_tokens=False).input_ids)
order = torch.randperm(len(lessons)).tolist()
learned = [weight for weight in model.parameters() if weight.requires_grad]
adam = torch.optim.AdamW(learned, lr=6e-4)
seconds, tokens = [], []
for step in range(STEPS):
    batch = [lessons[order[(step * BATCH + place) % len(order)]] for place in range(BATCH)]
    began = time.perf_counter()
    read = padded(batch, "cpu")
    model(**read).loss.backward()
    torch.nn.utils.clip_grad_norm_(learned, 1.0)
    adam.step()
    adam.zero_grad()
    seconds.append(time.perf_counter() - began)
    tokens.append(sum(len(it) for it, _ in batch))
    print(f"step {step + 1} of {STEPS}: {tokens[-1]} tokens, {seconds[-1]:.1f} s", file=sys.stderr)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{statistics.median(seconds[2:]):.2f} s a step, {sum(tokens[2:]) / sum(seconds[2:]):.0f} tokens/s, at most {peak:.0f} MB")
