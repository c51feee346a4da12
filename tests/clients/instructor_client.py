"""instructor without a model of the response: text. With one it asks for tools or a response_format."""

import instructor
import openai
from client import BASE, KEY, MODEL, QUESTION, main, said

client = instructor.from_openai(openai.OpenAI(base_url=BASE, api_key=KEY, max_retries=0))


def text():
    """text"""
    answer = client.chat.completions.create(
        model=MODEL, response_model=None, max_tokens=8, messages=[{"role": "user", "content": QUESTION}])
    said(answer.choices[0].message.content)


main(text)
