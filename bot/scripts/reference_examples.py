"""Shared code of the scripts that measure PEFT's speed: a LoRA like that of `azera hearth train`, and its examples."""

import json

import torch
from peft import LoraConfig, get_peft_model

RANK = 16
BATCH = 8
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def adapted(model, checkpointed):
    """Returns the model with a trainable LoRA."""
    model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=PROJECTIONS, task_type="CAUSAL_LM"))
    if checkpointed:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable()
    model.train()
    return model


def read_lessons(path, ids):
    """Returns the tokens and labels of each example; `ids` tokenizes a text."""

    def example(row):
        said = "".join(f"<|im_start|>{it['role']}\n{it['content']}<|im_end|>\n" for it in row["messages"])
        before = ids(said + "<|im_start|>assistant\n")
        reply = ids(row["reply"] + "<|im_end|>")
        if not row["messages"]:
            before, reply = reply[:1], reply[1:-1]
        return before + reply, [-100] * len(before) + reply

    with open(path) as lines:
        return [example(json.loads(line)) for line in lines if line.strip()]


def padded(batch, device):
    """Returns the tokens, attention mask and labels of a batch, padded to its longest example."""
    longest = max(len(read) for read, _ in batch)
    rows = [
        [it + [0] * (longest - len(it)) for it, _ in batch],
        [[1] * len(it) + [0] * (longest - len(it)) for it, _ in batch],
        [it + [-100] * (longest - len(it)) for _, it in batch],
    ]
    read, seen, told = (torch.tensor(row, device=device) for row in rows)
    return {"input_ids": read, "attention_mask": seen, "labels": told}
