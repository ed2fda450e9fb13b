"""Measures the prompt and generation speed of llama-cpp-python, like `azera bench inference` does for Azera: new prompts of
512 tokens, 128 generated tokens in one chat, two threads, first run left out, median of five.

    pip install llama-cpp-python==0.3.36
    python3 bot/scripts/reference-inference.py ~/.cache/azera/models/smollm2-135m/model.gguf
"""

import random
import statistics
import sys
import time

from llama_cpp import Llama

RUNS = 5
PROMPT_TOKENS = 512
REPLY_TOKENS = 128

model = Llama(sys.argv[1], n_ctx=2048, n_threads=2, n_threads_batch=2, n_batch=512, verbose=False)
dice = random.Random(4)
SYLLABLES = [a + b + c for a in "b d g k l m n p r s t v".split() for b in "aeiou" for c in ["", "n", "r", "s"]]


def prose(words):
    return " ".join(dice.choice(SYLLABLES) for _ in range(words))


def sample():
    return model.sample(temp=0.8)


def prompt_speed():
    text = prose(64)
    while len(model.tokenize(text.encode())) < PROMPT_TOKENS:
        text += " " + prose(32)
    tokens = model.tokenize(text.encode())
    model.reset()
    began = time.perf_counter()
    model.eval(tokens)
    sample()
    return len(tokens) / (time.perf_counter() - began)


def generation_speed():
    text = f"<|im_start|>user\nTell me a very long story about {prose(3)}.<|im_end|>\n<|im_start|>assistant\n"
    model.reset()
    model.eval(model.tokenize(text.encode(), special=True))
    began = time.perf_counter()
    token = sample()
    for _ in range(REPLY_TOKENS):
        model.eval([token])
        token = sample()
    return REPLY_TOKENS / (time.perf_counter() - began)


read = [(prompt_speed(), generation_speed()) for _ in range(RUNS + 1)][1:]
prompt, generation = (statistics.median(column) for column in zip(*read))
print(f"prompt {prompt:.0f} tokens/s, one chat {generation:.1f} tokens/s")
