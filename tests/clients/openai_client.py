"""The official client. tests/e2e/server_openai_test.py asks it for more; here it meets a server that wants a key."""

import asyncio

import openai
from client import BASE, KEY, MODEL, QUESTION, main, said

client = openai.OpenAI(base_url=BASE, api_key=KEY, max_retries=0)
ASK = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 8}


def chat():
    """chat, and the answer sent back"""
    answer = client.chat.completions.create(**ASK)
    said(answer.choices[0].message.content)
    history = [*ASK["messages"], answer.choices[0].message.model_dump(), {"role": "user", "content": "Another."}]
    said(client.chat.completions.create(**ASK | {"messages": history}).choices[0].message.content)


def stream():
    """streams"""
    chunks = list(client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True}))
    said("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))
    assert chunks[-1].usage.completion_tokens <= 8
    # get_final_completion() raises where an answer ends at max_tokens, whoever serves it.
    with client.chat.completions.stream(**ASK) as events:
        said("".join(event.delta for event in events if event.type == "content.delta"))


def completions():
    """completions"""
    said(client.completions.create(model=MODEL, prompt="One, two,", max_tokens=4).choices[0].text)


def models():
    """list of models"""
    assert MODEL in [model.id for model in client.models.list()]


def together():
    """async"""
    async def ask():
        async with openai.AsyncOpenAI(base_url=BASE, api_key=KEY, max_retries=0) as many:
            return await asyncio.gather(*(many.chat.completions.create(**ASK) for _ in range(4)))

    for answer in asyncio.run(ask()):
        said(answer.choices[0].message.content)


def errors():
    """errors"""
    try:
        openai.OpenAI(base_url=BASE, api_key="wrong", max_retries=0).models.list()
        raise AssertionError("a wrong key is taken")
    except openai.AuthenticationError as error:
        assert error.code == "invalid_api_key", error
    try:
        client.chat.completions.create(**ASK, tools=[{"type": "function", "function": {"name": "f"}}])
        raise AssertionError("tools are taken")
    except openai.BadRequestError as error:
        assert error.param == "tools", error


main(chat, stream, completions, models, together, errors)
