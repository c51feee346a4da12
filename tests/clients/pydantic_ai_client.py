"""Pydantic AI with text as its output."""

import asyncio

from client import BASE, KEY, MODEL, QUESTION, main, said
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

agent = Agent(OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=BASE, api_key=KEY)),
              system_prompt="Be brief.", model_settings={"max_tokens": 8})


def chat():
    """chat, and the answer sent back"""
    result = agent.run_sync(QUESTION)
    said(result.output)
    said(agent.run_sync("Another.", message_history=result.all_messages()).output)


def stream():
    """streams"""
    async def run():
        async with agent.run_stream(QUESTION) as result:
            return [part async for part in result.stream_text(delta=True)]

    said("".join(asyncio.run(run())))


main(chat, stream)
