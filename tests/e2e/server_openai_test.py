#!/usr/bin/env python3
"""The official OpenAI client against `quire serve` on the default model. Needs the package `openai` (tests/requirements.txt).

QUIRE_FAKE_SERVER names a program to test instead of quire: the server over its fake engine (quire_fake_server).
"""

import asyncio
import os
import subprocess
import sys

from quire_runner import Skipped, equal, main
from server_runner import LIMIT_S, Server, default_model

try:
    import openai
except ImportError:
    print("skipped: the package openai is not installed (tests/requirements.txt)\n0 passed, 0 failed, 1 skipped")
    sys.exit(77)

MESSAGES = [{"role": "system", "content": "You answer briefly."}, {"role": "user", "content": "Name a colour."}]
FAKE = os.environ.get("QUIRE_FAKE_SERVER")

server = None
client = None


def validated(answer):
    """The answer, checked against the client's own model: the client itself takes whatever comes."""
    type(answer).model_validate(answer.model_dump(mode="json"), strict=False)
    return answer


def chat(**options):
    return validated(client.chat.completions.create(
        **{"model": model(), "messages": MESSAGES, "max_tokens": 24, "temperature": 0} | options))


def completion(**options):
    return validated(client.completions.create(
        **{"model": model(), "prompt": "The capital of France is", "max_tokens": 12, "temperature": 0} | options))


def model():
    return client.models.list().data[0].id


def expect(error_type, call, says=""):
    try:
        call()
    except error_type as error:
        assert says in str(error), f"{says!r} is not in {error}"
        return error
    raise AssertionError(f"no {error_type.__name__}")


# --- models -----------------------------------------------------------------------------------------------------

def test_models():
    entry = validated(client.models.retrieve(model()))
    equal(entry.object, "model")
    expect(openai.NotFoundError, lambda: client.models.retrieve("nope"))


# --- chat -------------------------------------------------------------------------------------------------------

def test_chat():
    answer = chat()
    equal(answer.object, "chat.completion")
    equal(answer.choices[0].message.role, "assistant")
    assert answer.choices[0].message.content and answer.choices[0].finish_reason in ("stop", "length")
    equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
    assert answer.timings["predicted_n"] == answer.usage.completion_tokens, answer.timings


def test_chat_streams_the_same():
    options = {"temperature": 1.1, "seed": 5, "max_tokens": 40, "n": 3}
    whole = chat(**options)
    texts, roles, reasons, usage = {}, {}, {}, None
    for chunk in chat_stream(**options, stream_options={"include_usage": True}):
        validated(chunk)
        if not chunk.choices:
            usage = chunk.usage
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            roles[choice.index] = choice.delta.role or roles.get(choice.index)
            reasons[choice.index] = choice.finish_reason or reasons.get(choice.index)
    for choice in whole.choices:
        equal(texts[choice.index], choice.message.content, f"choice {choice.index}")
        equal(reasons[choice.index], choice.finish_reason)
        equal(roles[choice.index], "assistant")
    equal(len(whole.choices), 3)
    equal(usage.completion_tokens, whole.usage.completion_tokens)
    equal(usage.prompt_tokens, whole.usage.prompt_tokens)


def chat_stream(**options):
    return client.chat.completions.create(
        **{"model": model(), "messages": MESSAGES, "max_tokens": 24, "temperature": 0, "stream": True} | options)


def test_same_seed_same_answer():
    first, again, other = (chat(temperature=1.5, seed=seed, max_tokens=32).choices[0].message.content for seed in (1, 1, 2))
    equal(first, again)
    assert first != other


def test_chat_logprobs():
    answer = chat(logprobs=True, top_logprobs=3, max_tokens=6)
    content = answer.choices[0].logprobs.content
    assert 1 <= len(content) <= 6
    for token in content:
        equal(len(token.top_logprobs), 3)
        assert token.logprob <= 0 and bytes(token.bytes).decode(errors="replace") == token.token
        if not FAKE:
            best = max(token.top_logprobs, key=lambda candidate: candidate.logprob)
            equal(best.logprob, token.logprob, "greedy takes the best")
    equal("".join(token.token for token in content), answer.choices[0].message.content)


def test_content_parts():
    parts = [{"role": "user", "content": [{"type": "text", "text": "Name a "}, {"type": "text", "text": "colour."}]}]
    plain = [{"role": "user", "content": "Name a \ncolour."}]
    equal(chat(messages=parts).choices[0].message.content, chat(messages=plain).choices[0].message.content)


def test_stop():
    text = chat(max_tokens=24).choices[0].message.content
    stop = text[3:6]
    answer = chat(max_tokens=24, stop=[stop, "never to be seen"])
    equal(answer.choices[0].message.content, text[:text.index(stop)])
    equal(answer.choices[0].finish_reason, "stop")
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chat_stream(stop=stop) if chunk.choices)
    equal(streamed, text[:text.index(stop)])


def test_extensions():
    answer = chat(extra_body={"top_k": 1, "min_p": 0.1, "repetition_penalty": 1.05, "ignore_eos": True, "min_tokens": 2,
                              "chat_template_kwargs": {"enable_thinking": False}}, max_tokens=10)
    equal(answer.usage.completion_tokens, 10)


def test_biased_tokens():
    if FAKE:
        raise Skipped("the fake engine knows no bias")
    wanted = client.post("/../tokenize", body={"prompt": " blue", "add_special_tokens": False}, cast_to=object)["tokens"][0]
    answer = completion(logit_bias={str(wanted): 100}, max_tokens=3)
    equal(answer.choices[0].text, " blue blue blue")


# --- completions -------------------------------------------------------------------------------------------------

def test_completion():
    answer = completion()
    equal(answer.object, "text_completion")
    equal(answer.usage.completion_tokens <= 12, True)
    streamed = "".join(chunk.choices[0].text for chunk in client.completions.create(
        model=model(), prompt="The capital of France is", max_tokens=12, temperature=0, stream=True) if chunk.choices)
    equal(streamed, answer.choices[0].text)


def test_default_length_is_16():
    equal(client.completions.create(model=model(), prompt="One two three", extra_body={"ignore_eos": True}).usage.completion_tokens, 16)


def test_many_prompts():
    answer = completion(prompt=["One", "Two"], n=2, temperature=1, seed=3)
    equal([choice.index for choice in answer.choices], [0, 1, 2, 3])
    alone = completion(prompt="One", n=2, temperature=1, seed=3)
    equal([choice.text for choice in alone.choices], [choice.text for choice in answer.choices[:2]])


def test_echo_and_logprobs():
    answer = client.completions.create(model=model(), prompt="Hello there", max_tokens=2, temperature=0, echo=True, logprobs=1)
    choice = answer.choices[0]
    assert choice.text.startswith("Hello there")
    equal(len(choice.logprobs.tokens), len(choice.logprobs.token_logprobs))
    equal(len(choice.logprobs.tokens), len(choice.logprobs.text_offset))
    equal(choice.logprobs.token_logprobs[0], None)
    for token, offset in list(zip(choice.logprobs.tokens, choice.logprobs.text_offset))[-2:]:
        assert choice.text[offset:].startswith(token) or choice.finish_reason == "stop", (token, offset, choice.text)


# --- errors ------------------------------------------------------------------------------------------------------

def test_errors_are_the_clients_own():
    expect(openai.NotFoundError, lambda: chat(model="nope"), "there is no model")
    error = expect(openai.BadRequestError, lambda: chat(temperature=-1), "temperature")
    equal(error.param, "temperature")
    equal(error.type, "invalid_request_error")
    equal(expect(openai.BadRequestError, lambda: chat(max_tokens=10_000_000)).code, "context_length_exceeded")
    expect(openai.BadRequestError, lambda: chat(messages=[]), "messages")
    expect(openai.BadRequestError, lambda: chat(messages=[{"role": "frob", "content": "x"}]), "role")
    expect(openai.BadRequestError, lambda: chat(response_format={"type": "json_object"}), "response_format")
    expect(openai.BadRequestError, lambda: chat(tools=[{"type": "function", "function": {"name": "f"}}]), "tools")
    expect(openai.BadRequestError, lambda: chat(extra_body={"frobnicate": 1}), "frobnicate")
    expect(openai.BadRequestError, lambda: completion(n=0), "n")
    expect(openai.NotFoundError, lambda: client.embeddings.create(model=model(), input="x"))


# --- cancelling, and many at a time --------------------------------------------------------------------------------

def test_leaving_a_stream():
    stream = chat_stream(max_tokens=400, extra_body={"ignore_eos": True})
    for _, chunk in zip(range(5), stream):
        validated(chunk)
    stream.close()
    assert chat().choices[0].message.content


def test_many_at_a_time():
    prompts = [f"Number {i} is" for i in range(16)]
    alone = [completion(prompt=prompt).choices[0].text for prompt in prompts]

    async def together():
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=LIMIT_S, max_retries=0) as many:
            name = model()
            answers = await asyncio.gather(*(many.completions.create(
                model=name, prompt=prompt, max_tokens=12, temperature=0) for prompt in prompts))
            return [answer.choices[0].text for answer in answers]

    equal(asyncio.run(together()), alone, "greedy answers amid others")


class FakeServer:
    """The server over its fake engine."""

    def __enter__(self):
        self.process = subprocess.Popen([FAKE, "0", "200"], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def run():
    global server, client
    try:
        context = FakeServer() if FAKE else Server("--model", default_model())
    except Skipped as reason:
        print(f"skipped: {reason}\n0 passed, 0 failed, 1 skipped")
        sys.exit(77)
    with context as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=LIMIT_S, max_retries=0)
        main([value for name, value in list(globals().items()) if name.startswith("test_")])


if __name__ == "__main__":
    run()
