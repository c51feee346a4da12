"""DSPy: its language model, and a signature in text. What the small model makes of the signature is its own affair."""

import dspy
from client import BASE, KEY, MODEL, QUESTION, main, said

OPTIONS = {"api_base": BASE, "api_key": KEY, "max_tokens": 16, "temperature": 0.5, "cache": False, "num_retries": 0}


def answer_of(answers):
    first = answers[0]
    return first if isinstance(first, str) else first["text"]


def chat():
    """chat"""
    lm = dspy.LM(f"openai/{MODEL}", **OPTIONS)
    said(answer_of(lm(QUESTION)))
    said(answer_of(lm(messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}])))


def signature():
    """signatures (ChatAdapter)"""
    dspy.configure(lm=dspy.LM(f"openai/{MODEL}", **OPTIONS), adapter=dspy.ChatAdapter(use_json_adapter_fallback=False))
    try:
        dspy.Predict("question -> answer")(question=QUESTION)
    except dspy.utils.exceptions.AdapterParseError as error:
        said(error.lm_response)  # the model answered, in a form that DSPy does not read


main(chat, signature)
