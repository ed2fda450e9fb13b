"""Scores pairs of texts with a BERT cross-encoder in numpy, as an independent check of Azera's own scores, and makes models with
made-up weights in the form of the model hub.

    pip install numpy
    python3 bot/scripts/reference-reranker.py score FOLDER 'QUESTION' 'TEXT' ['TEXT' ...]
    python3 bot/scripts/reference-reranker.py tiny FOLDER
    python3 bot/scripts/reference-reranker.py minilm FOLDER VOCAB

`score` reads `config.json`, `vocab.txt` and `model.safetensors`. `tiny` writes the model of the tests of
`bot/models/llama/tests/rerank.rs`, and prints the scores that they expect. `minilm` writes a model with the shape of
ms-marco-MiniLM-L6-v2 and the vocabulary of a `vocab.txt`: its scores mean nothing, and its speed is that of the real one.
`azera models import FOLDER --name NAME` installs either.
"""

import json
import math
import pathlib
import struct
import sys
import unicodedata

import numpy

# The limits of Azera's reader, in tokens.
QUESTION_TOKENS, WINDOW = 48, 128

TINY_WORDS = """[PAD] [UNK] [CLS] [SEP] [MASK] what sleeps on the sofa ? grey cat . train to coast leaves at nine
lamp ##s brass of harbour ! polish ##ed""".split()
TINY = {"hidden": 48, "inner": 80, "layers": 2, "heads": 4, "positions": 64}
MINILM = {"hidden": 384, "inner": 1536, "layers": 6, "heads": 12, "positions": 512}

TINY_QUESTION = "What sleeps on the sofa?"
TINY_TEXTS = [
    "The grey cat sleeps on the sofa.",
    "The train to the coast leaves at nine.",
    "Somebody polished the lamps of brass!",
    "",
    "the harbour lamp " * 60,
]


class Dice:
    """Draws the numbers that the Rust tests draw: a linear congruential generator's upper 24 bits, from -0.5 to 0.5."""

    def __init__(self):
        self.state = 1

    def draw(self, shape, scale=1.0, around=0.0):
        numbers = numpy.empty(math.prod(shape), numpy.float32)
        for place in range(len(numbers)):
            self.state = (self.state * 1664525 + 1013904223) % (1 << 32)
            numbers[place] = numpy.float32(around) + numpy.float32(scale) * numpy.float32((self.state >> 8) / (1 << 24) - 0.5)
        return numbers.reshape(shape)


def parts(size, words):
    """Returns the name, shape, scale and centre of each tensor, in the order in which they are drawn."""
    hidden, inner = size["hidden"], size["inner"]
    yield "bert.embeddings.word_embeddings.weight", (words, hidden), 1.0, 0.0
    yield "bert.embeddings.position_embeddings.weight", (size["positions"], hidden), 0.5, 0.0
    yield "bert.embeddings.token_type_embeddings.weight", (2, hidden), 1.0, 0.0
    yield "bert.embeddings.LayerNorm.weight", (hidden,), 0.2, 1.0
    yield "bert.embeddings.LayerNorm.bias", (hidden,), 0.2, 0.0
    for layer in range(size["layers"]):
        for part, rows, columns in [
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", inner, hidden),
            ("output.dense", hidden, inner),
        ]:
            yield f"bert.encoder.layer.{layer}.{part}.weight", (rows, columns), 0.5, 0.0
            yield f"bert.encoder.layer.{layer}.{part}.bias", (rows,), 0.2, 0.0
        for part in ["attention.output.LayerNorm", "output.LayerNorm"]:
            yield f"bert.encoder.layer.{layer}.{part}.weight", (hidden,), 0.2, 1.0
            yield f"bert.encoder.layer.{layer}.{part}.bias", (hidden,), 0.2, 0.0
    yield "bert.pooler.dense.weight", (hidden, hidden), 0.5, 0.0
    yield "bert.pooler.dense.bias", (hidden,), 0.2, 0.0
    yield "classifier.weight", (1, hidden), 2.0, 0.0
    yield "classifier.bias", (1,), 0.2, 0.0


def write(folder, size, words, draw):
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "hidden_size": size["hidden"],
        "intermediate_size": size["inner"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": size["heads"],
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": size["positions"],
        "type_vocab_size": 2,
        "vocab_size": len(words),
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    header, data = {}, b""
    for name, shape, scale, around in parts(size, len(words)):
        numbers = draw(shape, scale, around).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    header = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)


def read(folder):
    config = json.loads((folder / "config.json").read_text())
    words = (folder / "vocab.txt").read_text().removesuffix("\n").split("\n")
    blob = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8 : 8 + length])
    types = {"F32": numpy.float32, "F16": numpy.float16}
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__" or about["dtype"] not in types:
            continue
        first, last = (8 + length + offset for offset in about["data_offsets"])
        tensors[name] = numpy.frombuffer(blob[first:last], types[about["dtype"]]).reshape(about["shape"]).astype(numpy.float64)
    return config, {word: number for number, word in enumerate(words)}, tensors


def tokens(text, vocabulary):
    """Returns the WordPiece tokens of a text, as BERT's lower-case tokenizer does."""
    words, word = [], ""
    for letter in unicodedata.normalize("NFD", text.lower()):
        if unicodedata.category(letter) == "Mn":
            continue
        if letter.isspace() or unicodedata.category(letter).startswith("P") or letter in "$+<=>^`|~":
            words += [word, letter]
            word = ""
        else:
            word += letter
    found = []
    for word in filter(str.strip, words + [word]):
        pieces, first = [], 0
        while first < len(word):
            ends = range(len(word), first, -1)
            names = (("##" if first else "") + word[first:end] for end in ends)
            match = next(((name, end) for name, end in zip(names, ends) if name in vocabulary), None)
            if match is None:
                pieces = ["[UNK]"]
                break
            pieces.append(match[0])
            first = match[1]
        found += [vocabulary[piece] for piece in pieces]
    return found


def norm(states, tensors, name, epsilon):
    centred = states - states.mean(-1, keepdims=True)
    return centred / numpy.sqrt(centred.var(-1, keepdims=True) + epsilon) * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def dense(states, tensors, name):
    return states @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def score(model, question, text):
    config, vocabulary, tensors = model
    window = min(WINDOW, config["max_position_embeddings"])
    first = [vocabulary["[CLS]"], *tokens(question, vocabulary)[:QUESTION_TOKENS], vocabulary["[SEP]"]]
    second = [*tokens(text, vocabulary)[: window - len(first) - 1], vocabulary["[SEP]"]]
    segments = [0] * len(first) + [1] * len(second)
    epsilon, heads = config["layer_norm_eps"], config["num_attention_heads"]
    of = "bert.embeddings"
    states = tensors[f"{of}.word_embeddings.weight"][first + second]
    states = states + tensors[f"{of}.token_type_embeddings.weight"][segments]
    states = states + tensors[f"{of}.position_embeddings.weight"][: len(states)]
    states = norm(states, tensors, f"{of}.LayerNorm", epsilon)
    for layer in range(config["num_hidden_layers"]):
        of = f"bert.encoder.layer.{layer}"
        split = lambda name: numpy.stack(numpy.split(dense(states, tensors, f"{of}.attention.self.{name}"), heads, -1))
        query, key, value = map(split, ["query", "key", "value"])
        weights = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        weights = numpy.exp(weights - weights.max(-1, keepdims=True))
        mixed = numpy.concatenate(list(weights / weights.sum(-1, keepdims=True) @ value), -1)
        states = states + dense(mixed, tensors, f"{of}.attention.output.dense")
        states = norm(states, tensors, f"{of}.attention.output.LayerNorm", epsilon)
        inner = dense(states, tensors, f"{of}.intermediate.dense")
        inner = 0.5 * inner * (1 + numpy.vectorize(math.erf)(inner / math.sqrt(2)))
        states = norm(states + dense(inner, tensors, f"{of}.output.dense"), tensors, f"{of}.output.LayerNorm", epsilon)
    pooled = numpy.tanh(dense(states[0], tensors, "bert.pooler.dense"))
    return dense(pooled, tensors, "classifier")[0]


def main():
    match sys.argv[1:]:
        case ["score", folder, question, *texts] if texts:
            pass
        case ["tiny", folder]:
            write(pathlib.Path(folder), TINY, TINY_WORDS, Dice().draw)
            question, texts = TINY_QUESTION, TINY_TEXTS
        case ["minilm", folder, vocabulary]:
            dice = numpy.random.default_rng(1)
            draw = lambda shape, scale, around: (around + scale * 0.1 * dice.standard_normal(shape)).astype(numpy.float32)
            words = pathlib.Path(vocabulary).read_text().removesuffix("\n").split("\n")
            return write(pathlib.Path(folder), MINILM, words, draw)
        case _:
            sys.exit(__doc__)
    model = read(pathlib.Path(folder))
    for text in texts:
        print(f"{score(model, question, text):9.4f}  {text[:60]}")


main()
