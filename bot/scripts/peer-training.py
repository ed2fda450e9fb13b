"""Reads how fast PEFT trains the adapter that `azera hearth train` trains: the same file of the model (its weights made plain), the
same lessons, rank, batch and threads, gradients checkpointed or not; seconds a step, the first two left out.

    pip install torch transformers peft gguf
    azera hearth curriculum --seed 1 --count 4000 lessons.jsonl
    python3 bot/scripts/peer-training.py ~/.cache/azera/models/smollm2-135m/model.gguf lessons.jsonl
    azera hearth train lessons.jsonl --out peer.gguf --steps 12 --anew
"""

import json
import os
import resource
import statistics
import sys
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

STEPS = 12
BATCH = 8
RANK = 16
THREADS = 2

torch.set_num_threads(THREADS)
torch.manual_seed(1)
folder, file = os.path.split(os.path.abspath(sys.argv[1]))
reader = AutoTokenizer.from_pretrained(folder, gguf_file=file)
model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, torch_dtype=torch.float32)
projections = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=projections, task_type="CAUSAL_LM"))
if "--checkpointed" in sys.argv:
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable()
model.train()


def example(row):
    said = "".join(f"<|im_start|>{it['role']}\n{it['content']}<|im_end|>\n" for it in row["messages"])
    before = reader(said + "<|im_start|>assistant\n", add_special_tokens=False).input_ids
    reply = reader(row["reply"] + "<|im_end|>", add_special_tokens=False).input_ids
    if not row["messages"]:
        before, reply = reply[:1], reply[1:-1]
    return before + reply, [-100] * len(before) + reply


lessons = [example(json.loads(line)) for line in open(sys.argv[2]) if line.strip()]
order = torch.randperm(len(lessons)).tolist()
learned = [weight for weight in model.parameters() if weight.requires_grad]
adam = torch.optim.AdamW(learned, lr=6e-4)
seconds, tokens = [], []
for step in range(STEPS):
    batch = [lessons[order[(step * BATCH + place) % len(order)]] for place in range(BATCH)]
    longest = max(len(read) for read, _ in batch)
    began = time.perf_counter()
    read = torch.tensor([it + [0] * (longest - len(it)) for it, _ in batch])
    told = torch.tensor([it + [-100] * (longest - len(it)) for _, it in batch])
    seen = torch.tensor([[1] * len(it) + [0] * (longest - len(it)) for it, _ in batch])
    model(input_ids=read, attention_mask=seen, labels=told).loss.backward()
    torch.nn.utils.clip_grad_norm_(learned, 1.0)
    adam.step()
    adam.zero_grad()
    seconds.append(time.perf_counter() - began)
    tokens.append(sum(len(it) for it, _ in batch))
    print(f"step {step + 1} of {STEPS}: {tokens[-1]} tokens, {seconds[-1]:.1f} s", file=sys.stderr)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{statistics.median(seconds[2:]):.2f} s a step, {sum(tokens[2:]) / sum(seconds[2:]):.0f} tokens/s, at most {peak:.0f} MB")
