"""The Agents SDK over chat completions, without tools."""

import asyncio

import openai
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from client import BASE, KEY, MODEL, QUESTION, main, said

set_tracing_disabled(True)  # traces would go to OpenAI
agent = Agent(
    name="Briefly", instructions="Be brief.", model_settings=ModelSettings(max_tokens=8),
    model=OpenAIChatCompletionsModel(MODEL, openai.AsyncOpenAI(base_url=BASE, api_key=KEY, max_retries=0)))


def chat():
    """chat, and the answer sent back"""
    result = Runner.run_sync(agent, QUESTION)
    said(result.final_output)
    said(Runner.run_sync(agent, [*result.to_input_list(), {"role": "user", "content": "Another."}]).final_output)


def stream():
    """streams"""
    async def run():
        result = Runner.run_streamed(agent, QUESTION)
        async for _ in result.stream_events():
            pass
        return result.final_output

    said(asyncio.run(run()))


main(chat, stream)
