"""Writes a model with random weights in the shape of Qwen3 14B, to measure training and generation speed without the real one.
Speed does not depend on the weights' values. Weights are Q4_K, and Q6_K for the last projection, with numbers about as large as
those of a trained model. The vocabulary comes from another GGUF file with a chat template, such as the default model's, filled up
to the size of Qwen3's. The script needs 10 GB of memory.

    pip install gguf numpy
    python3 bot/scripts/random-model.py ~/.cache/azera/models/smollm2-135m/model.gguf random-14b.gguf
"""

import sys

import gguf
import numpy

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD_WIDTH, INNER, VOCABULARY = 40, 5120, 40, 8, 128, 17408, 151_936
DEVIATION = 0.02
# Number of blocks to draw; they repeat to fill a matrix.
DRAWN_BLOCKS = 1 << 20

dice = numpy.random.default_rng(1)


def half(number):
    return numpy.frombuffer(numpy.float16(number).tobytes(), numpy.uint8)


def blocks_q4():
    """Returns blocks of 256 numbers: (d * 32 * q) - (dmin * 32) with 4-bit q, all scales and mins of a block 32."""
    step = DEVIATION / (32 * 4.61)
    head = numpy.concatenate([half(step), half(7.5 * step), [0xA0] * 8, [0] * 4]).astype(numpy.uint8)
    quants = dice.integers(0, 256, (DRAWN_BLOCKS, 128), numpy.uint8)
    return numpy.concatenate([numpy.broadcast_to(head, (DRAWN_BLOCKS, 16)), quants], axis=1)


def blocks_q6():
    """Returns blocks of 256 numbers: d * 16 * (q - 32) with 6-bit q, all scales of a block 16."""
    quants = dice.integers(0, 256, (DRAWN_BLOCKS, 192), numpy.uint8)
    tail = numpy.concatenate([[16] * 16, half(DEVIATION / (16 * 18.5))]).astype(numpy.uint8)
    return numpy.concatenate([quants, numpy.broadcast_to(tail, (DRAWN_BLOCKS, 18))], axis=1)


Q4, Q6 = gguf.GGMLQuantizationType.Q4_K, gguf.GGMLQuantizationType.Q6_K
DRAWN = {Q4: blocks_q4(), Q6: blocks_q6()}
words = gguf.GGUFReader(sys.argv[1])
writer = gguf.GGUFWriter(sys.argv[2], "qwen3")
writer.add_name("Random weights of the shape of Qwen3 14B")
writer.add_block_count(LAYERS)
writer.add_context_length(40_960)
writer.add_embedding_length(WIDTH)
writer.add_feed_forward_length(INNER)
writer.add_head_count(HEADS)
writer.add_head_count_kv(KV_HEADS)
writer.add_key_length(HEAD_WIDTH)
writer.add_value_length(HEAD_WIDTH)
writer.add_layer_norm_rms_eps(1e-6)
writer.add_rope_freq_base(1e6)
writer.add_vocab_size(VOCABULARY)


def known(key):
    return words.fields[key].contents() if key in words.fields else None


tokens = list(known("tokenizer.ggml.tokens"))
kinds = list(known("tokenizer.ggml.token_type"))
more = VOCABULARY - len(tokens)
if more < 0 or not known("tokenizer.chat_template"):
    sys.exit(f"{sys.argv[1]} has {len(tokens)} tokens, more than {VOCABULARY}, or no chat template: it takes another one")
writer.add_tokenizer_model(known("tokenizer.ggml.model"))
if known("tokenizer.ggml.pre"):
    writer.add_tokenizer_pre(known("tokenizer.ggml.pre"))
writer.add_token_list(tokens + [f"[unused {number}]" for number in range(more)])
writer.add_token_types(kinds + [int(gguf.TokenType.UNUSED)] * more)
writer.add_token_merges(known("tokenizer.ggml.merges"))
writer.add_bos_token_id(int(known("tokenizer.ggml.bos_token_id")))
writer.add_eos_token_id(int(known("tokenizer.ggml.eos_token_id")))
writer.add_chat_template(known("tokenizer.chat_template"))


def matrix(name, inputs, outputs, kind=Q4):
    drawn = DRAWN[kind]
    count = inputs * outputs // 256
    first = int(dice.integers(0, DRAWN_BLOCKS))
    rows = drawn.take(numpy.arange(first, first + count), axis=0, mode="wrap")
    writer.add_tensor(f"{name}.weight", rows.reshape(outputs, -1), raw_dtype=kind)


def norm(name, length):
    writer.add_tensor(f"{name}.weight", numpy.ones(length, numpy.float32))


matrix("token_embd", WIDTH, VOCABULARY)
norm("output_norm", WIDTH)
matrix("output", WIDTH, VOCABULARY, Q6)
for layer in range(LAYERS):
    at = f"blk.{layer}"
    norm(f"{at}.attn_norm", WIDTH)
    norm(f"{at}.ffn_norm", WIDTH)
    norm(f"{at}.attn_q_norm", HEAD_WIDTH)
    norm(f"{at}.attn_k_norm", HEAD_WIDTH)
    matrix(f"{at}.attn_q", WIDTH, HEADS * HEAD_WIDTH)
    matrix(f"{at}.attn_k", WIDTH, KV_HEADS * HEAD_WIDTH)
    matrix(f"{at}.attn_v", WIDTH, KV_HEADS * HEAD_WIDTH)
    matrix(f"{at}.attn_output", HEADS * HEAD_WIDTH, WIDTH)
    matrix(f"{at}.ffn_gate", WIDTH, INNER)
    matrix(f"{at}.ffn_up", WIDTH, INNER)
    matrix(f"{at}.ffn_down", INNER, WIDTH)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
