"""LlamaIndex with OpenAILike."""

from client import BASE, KEY, MODEL, QUESTION, main, said
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

OPTIONS = {"model": MODEL, "api_base": BASE, "api_key": KEY, "max_tokens": 8, "max_retries": 0}
llm = OpenAILike(is_chat_model=True, **OPTIONS)


def chat():
    """chat, and the answer sent back"""
    asked = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content=QUESTION)]
    answer = llm.chat(asked).message
    said(answer.content)
    said(llm.chat([*asked, answer, ChatMessage(role="user", content="Another.")]).message.content)


def stream():
    """streams"""
    said("".join(part.delta or "" for part in llm.stream_chat([ChatMessage(role="user", content=QUESTION)])))


def completions():
    """completions"""
    said(OpenAILike(is_chat_model=False, **OPTIONS).complete("One, two,").text)


main(chat, stream, completions)
