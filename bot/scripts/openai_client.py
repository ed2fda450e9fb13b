"""Talks with Azera through the official `openai` package, for the tests.

    openai_client.py ADDRESS < KEY

Prints one JSON object with what came back.
"""

import json
import sys

import openai


def main() -> None:
    key = sys.stdin.readline().strip()
    client = openai.OpenAI(base_url=f"{sys.argv[1]}/v1", api_key=key, max_retries=0, timeout=300)
    models = [model.id for model in client.models.list()]
    said = [
        {"role": "system", "content": "This is ignored: a persona has a prompt of its own."},
        {"role": "user", "content": "Hello! My name is Ann, and I collect old maps."},
    ]
    whole = client.chat.completions.create(model="azera", messages=said, temperature=0.2)
    said += [
        {"role": "assistant", "content": whole.choices[0].message.content},
        {"role": "user", "content": "What do you like about maps?"},
    ]
    pieces, usage, finish = [], None, None
    options = {"include_usage": True}
    with client.chat.completions.create(model="azera", messages=said, stream=True, stream_options=options) as stream:
        for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                finish = choice.finish_reason or finish
                if choice.delta.content:
                    pieces.append(choice.delta.content)
    errors = {}
    for name, call in {
        "model": lambda: client.chat.completions.create(model="nobody", messages=said),
        "key": lambda: client.with_options(api_key="azk_wrong_key").models.list(),
        "turn": lambda: client.chat.completions.create(model="azera", messages=said[:-1]),
    }.items():
        try:
            call()
        except openai.APIStatusError as error:
            errors[name] = [type(error).__name__, error.code]
    print(
        json.dumps(
            {
                "models": models,
                "whole": whole.choices[0].message.content,
                "tokens": whole.usage.total_tokens,
                "pieces": pieces,
                "finish": finish,
                "streamed_tokens": usage.completion_tokens,
                "errors": errors,
            }
        )
    )


main()
