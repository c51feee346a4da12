"""The Agents SDK over chat completions, without tools."""

import asyncio

import openai
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from client import BASE, KEY, MODEL, QUESTION, main, said

set_tracing_disabled(True)  # traces would go to OpenAI


def agent():
    """A new one for each event loop: an AsyncOpenAI belongs to the loop that it was first used in."""
    model = OpenAIChatCompletionsModel(MODEL, openai.AsyncOpenAI(base_url=BASE, api_key=KEY, max_retries=0))
    return Agent(name="Briefly", instructions="Be brief.", model_settings=ModelSettings(max_tokens=8), model=model)


def chat():
    """chat, and the answer sent back"""
    async def run():
        briefly = agent()
        first = await Runner.run(briefly, QUESTION)
        said(first.final_output)
        said((await Runner.run(briefly, [*first.to_input_list(), {"role": "user", "content": "Another."}])).final_output)

    asyncio.run(run())


def stream():
    """streams"""
    async def run():
        result = Runner.run_streamed(agent(), QUESTION)
        async for _ in result.stream_events():
            pass
        return result.final_output

    said(asyncio.run(run()))


main(chat, stream)
