"""Samples of requests for the OpenAPI document: curl, Python, and Node.js."""

import json
import re
from collections.abc import Mapping
from typing import Any

_PARAMETER = re.compile(r"\{(\w+)\}")


def samples_of(method: str, path: str, description: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return samples of an operation, as ``x-codeSamples`` has them.

    The URL of the service is ``URL``, and the key or inbox token is ``KEY``.
    """
    parameters = description.get("parameters", ())
    examples = {
        parameter["name"]: str(parameter["example"])
        for parameter in parameters
        if parameter["in"] == "path"
    }
    url = _PARAMETER.sub(lambda found: examples[found[1]], path)
    query = [
        parameter
        for parameter in parameters
        if parameter["in"] == "query" and parameter.get("required")
    ]
    if query:
        url += "?" + "&".join(f"{parameter['name']}={parameter['example']}" for parameter in query)
    headers = {
        parameter["name"]: str(parameter["example"])
        for parameter in parameters
        if parameter["in"] == "header" and parameter.get("required")
    }
    body = _body(description)
    return [
        {"lang": "Shell", "label": "curl", "source": _curl(method.upper(), url, headers, body)},
        {"lang": "Python", "label": "Python", "source": _python(method, url, headers, body)},
        {"lang": "JavaScript", "label": "Node.js", "source": _node(method, url, headers, body)},
    ]


def _body(description: Mapping[str, Any]) -> Any:
    contents = description.get("requestBody", {}).get("content", {})
    for content in contents.values():
        return content["examples"]["request"]["value"]
    return None


def _curl(method: str, url: str, headers: Mapping[str, str], body: Any) -> str:
    lines = [f'curl -X {method} "$URL{url}"', '-H "Authorization: Bearer $KEY"']
    lines += [f"-H '{name}: {value}'" for name, value in headers.items()]
    if body is not None:
        text = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
        lines += ["-H 'Content-Type: application/json'", f"-d '{text}'"]
    return " \\\n  ".join(lines)


def _python(method: str, url: str, headers: Mapping[str, str], body: Any) -> str:
    known = "".join(f", {name!r}: {value!r}" for name, value in headers.items())
    lines = [f'    "{method.upper()}",', f'    f"{{URL}}{url}",']
    lines.append(f'    headers={{"Authorization": f"Bearer {{KEY}}"{known}}},')
    if body is not None:
        lines.append(f"    json={body!r},")
    call = "\n".join(["httpx.request(", *lines, ")"])
    return f"import httpx\n\nanswer = {call}\nanswer.raise_for_status()"


def _node(method: str, url: str, headers: Mapping[str, str], body: Any) -> str:
    known = {**headers, **({"Content-Type": "application/json"} if body is not None else {})}
    more = "".join(f", {json.dumps(name)}: {json.dumps(value)}" for name, value in known.items())
    lines = [f"const answer = await fetch(`${{URL}}{url}`, {{", f'  method: "{method.upper()}",']
    lines.append(f"  headers: {{ Authorization: `Bearer ${{KEY}}`{more} }},")
    if body is not None:
        lines.append(f"  body: JSON.stringify({json.dumps(body, ensure_ascii=False)}),")
    return "\n".join([*lines, "});", "if (!answer.ok) throw new Error(await answer.text());"])
