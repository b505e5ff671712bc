"""The JSON of a request and its journal key do not change between versions: they equal the values stored here.

If one of them changed, no journal entry would be found, and all samples would be requested and paid for again.
"""

import pytest

from bestofn.builders.records import Request, Sampling
from bestofn.builders.sampling.request_key import request_body, request_key

QUESTION = {"role": "user", "content": "¿1 + 1?"}
TOOL = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}}
SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}

PLAIN = Request(messages=(QUESTION,))
FULL = Request(
    messages=({"role": "system", "content": "Be brief."}, QUESTION),
    tools=(TOOL,),
    sampling=Sampling(
        temperature=0.7,
        top_p=0.9,
        max_tokens=256,
        stop=("\n\n",),
        seed=7,
        effort="low",
        thinking_tokens=1024,
        logprobs=True,
        extra={"top_k": 5},
    ),
    schema=SCHEMA,
    tool_choice="required",
)

PLAIN_BODY = rb'{"messages":[{"content":"\u00bf1 + 1?","role":"user"}],"sampling":{}}'
FULL_BODY = (
    rb'{"messages":[{"content":"Be brief.","role":"system"},{"content":"\u00bf1 + 1?","role":"user"}],'
    rb'"property_order":[["b","a"]],"sampling":{"effort":"low","extra":{"top_k":5},"logprobs":true,"max_tokens":256,'
    rb'"seed":7,"stop":["\n\n"],"temperature":0.7,"thinking_tokens":1024,"top_p":0.9},'
    rb'"schema":{"properties":{"a":{"type":"integer"},"b":{"type":"string"}},"type":"object"},'
    rb'"tool_choice":"required","tools":[{"function":{"description":"Adds.","name":"add",'
    rb'"parameters":{"type":"object"}},"type":"function"}]}'
)


@pytest.mark.parametrize(
    ("request_", "body", "key"),
    [
        (PLAIN, PLAIN_BODY, "038520d54d9cfc349a923d51cfe5964e"),
        (FULL, FULL_BODY, "fcd983619964855ade807c71c8669f3f"),
    ],
    ids=["defaults", "everything set"],
)
def test_body_and_key_have_the_stored_values(request_: Request, body: bytes, key: str) -> None:
    assert request_body(request_) == body
    assert request_key("openai_chat http://h/v1 m", body).hex() == key


def test_a_new_credential_in_a_request_field_does_not_change_the_key() -> None:
    def body(extra: dict[str, object]) -> bytes:
        return request_body(Request(messages=(QUESTION,), sampling=Sampling(extra=extra)))

    assert body({"api_key": "a"}) == PLAIN_BODY
    one, two = (
        {"auth": {"token": t, "mode": "x"}, "user": f"sk-{t}"} for t in ("a1b2c3d4e5f6g7h8i9", "z9y8x7w6v5u4t3s2r1")
    )
    assert body(one) == body(two) == body({"auth": {"mode": "x"}, "user": "***"})
