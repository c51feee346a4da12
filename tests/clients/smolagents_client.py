"""smolagents: its model, and an agent that writes code. The small model's code is its own affair."""

from client import BASE, KEY, MODEL, QUESTION, main, said
from smolagents import ChatMessage, CodeAgent, OpenAIModel

model = OpenAIModel(model_id=MODEL, api_base=BASE, api_key=KEY, max_tokens=16)
MESSAGES = [ChatMessage(role="user", content=[{"type": "text", "text": QUESTION}])]


def chat():
    """chat"""
    said(model.generate(MESSAGES, stop_sequences=["###"]).content)


def stream():
    """streams"""
    said("".join(delta.content or "" for delta in model.generate_stream(MESSAGES)))


def agent():
    """CodeAgent"""
    said(str(CodeAgent(tools=[], model=model, max_steps=1, verbosity_level=0).run(QUESTION)))


main(chat, stream, agent)
