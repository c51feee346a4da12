"""litellm, as a library; what many other programs call models through."""

import litellm
from client import BASE, KEY, MODEL, QUESTION, main, said

ASK = {"api_base": BASE, "api_key": KEY, "max_tokens": 8, "num_retries": 0}
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]


def chat():
    """chat, and the answer sent back"""
    answer = litellm.completion(model=f"openai/{MODEL}", messages=MESSAGES, **ASK)
    said(answer.choices[0].message.content)
    history = [*MESSAGES, answer.choices[0].message.model_dump(), {"role": "user", "content": "Another."}]
    said(litellm.completion(model=f"openai/{MODEL}", messages=history, **ASK).choices[0].message.content)


def stream():
    """streams"""
    chunks = litellm.completion(model=f"openai/{MODEL}", messages=MESSAGES, stream=True, **ASK)
    said("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))


def completions():
    """completions"""
    said(litellm.text_completion(model=f"text-completion-openai/{MODEL}", prompt="One, two,", **ASK).choices[0].text)


def as_vllm():
    """as hosted_vllm"""
    said(litellm.completion(model=f"hosted_vllm/{MODEL}", messages=MESSAGES, **ASK).choices[0].message.content)


main(chat, stream, completions, as_vllm)
