"""The real small model. Without its wheels these tests fail, unless EVALCUBE_SKIP_MODEL=1 allows it."""

import http.client
import json
import os

import pytest

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers.local_model import LlamaServer
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(os.environ.get("EVALCUBE_SKIP_MODEL") == "1", reason="EVALCUBE_SKIP_MODEL=1"),
]


def test_llama_server__chats():
    with LlamaServer(slots=2) as server:
        connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=PATIENCE)
        try:
            messages = [{"role": "user", "content": "What is the capital of France?"}]
            body = json.dumps({"model": "x", "messages": messages, "max_tokens": 12, "temperature": 0})
            connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
            response = connection.getresponse()
            reply = json.loads(response.read())
        finally:
            connection.close()

        assert response.status == 200
        assert reply["choices"][0]["message"]["content"].strip()
        assert 0 < reply["usage"]["completion_tokens"] <= 12
        assert reply["model"] == "SmolLM2-135M-Instruct.Q4_1"


def test_llama_server__tells_that_a_file_is_no_model(tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"no model at all")

    with pytest.raises(DeployError, match="local model broken") as caught:
        LlamaServer(path).start()

    assert "GGUF" in caught.value.remedy
