"""LangChain's package for OpenAI's API."""

from client import BASE, KEY, MODEL, QUESTION, main, said
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI

chat_model = ChatOpenAI(model=MODEL, base_url=BASE, api_key=KEY, max_tokens=8, max_retries=0)


def chat():
    """chat, and the answer sent back"""
    answer = chat_model.invoke([SystemMessage("Be brief."), HumanMessage(QUESTION)])
    said(answer.content)
    said(chat_model.invoke([HumanMessage(QUESTION), answer, HumanMessage("Another.")]).content)
    said(chat_model.invoke([HumanMessage(QUESTION), AIMessage("Red."), HumanMessage([{"type": "text", "text": "Another."}])]).content)


def stream():
    """streams"""
    said("".join(chunk.content for chunk in chat_model.stream(QUESTION)))


def batch():
    """batch"""
    for answer in chat_model.batch([QUESTION, "Name a number."]):
        said(answer.content)


def completions():
    """completions"""
    said(OpenAI(model=MODEL, base_url=BASE, api_key=KEY, max_tokens=8, max_retries=0).invoke("One, two,"))


main(chat, stream, batch, completions)
