"""Makes the table and the recipes in docs/clients.md from what the tests of the clients gave.

    table.py RESULTS VERSIONS [--write]

RESULTS has one line of JSON per cell (`client`, `feature`, `ok`), VERSIONS one line `package==version` per
package. Without `--write` the document is compared; versions are not part of the comparison, because
`scripts/clients` installs the newest ones.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "clients.md"
BEGIN, END = "<!-- {} begin: made by scripts/clients -->", "<!-- {} end -->"

FEATURES = ["plain", "streamed", "tools", "reasoning", "structured output"]

# Client, its package, and what has to be set beside the address and a key.
CLIENTS = [
    ("openai (Python)", "openai (Python)", "–"),
    ("openai-agents (Python)", "openai-agents", "–"),
    ("openai (Node)", "openai (Node)", "–"),
    ("@openai/agents", "@openai/agents", "–"),
    ("@ai-sdk/openai", "@ai-sdk/openai", "–"),
    ("@ai-sdk/open-responses", "@ai-sdk/open-responses", "`url` is the whole address of `/v1/responses`"),
    ("Codex", "@openai/codex", "`wire_api = \"responses\"`"),
    ("opencode", "opencode-ai", "`npm: \"@ai-sdk/openai\"`"),
    ("pydantic-ai", "pydantic-ai-slim", "`OpenAIResponsesModel`"),
    ("LangChain", "langchain-openai", "`use_responses_api=True`"),
    ("LiteLLM", "litellm", "model `openai/NAME`; `register_model` for real streaming"),
    ("LlamaIndex", "llama-index-llms-openai", "`OpenAIResponses` with `context_window`; `store=True` to keep reasoning"),
    ("async-openai (Rust)", "async-openai", "–"),
]

# Where the recipes stand in the tests, between `recipe: NAME` and `end`.
RECIPES = [
    ("Codex", "python/test_codex.py", "toml", "~/.codex/config.toml"),
    ("opencode", "python/test_opencode.py", "json", "opencode.json"),
    ("pydantic-ai", "python/test_pydantic_ai.py", "python", None),
    ("LangChain", "python/test_langchain.py", "python", None),
    ("LiteLLM", "python/test_litellm.py", "python", None),
    ("LlamaIndex", "python/test_llama_index.py", "python", None),
    ("@openai/agents", "node/agents.mjs", "js", None),
    ("async-openai", "rust/src/main.rs", "rust", None),
]
ADDRESS = "http://127.0.0.1:4141/v1"


def main(results, versions, write):
    cells = {}
    for line in Path(results).read_text().splitlines():
        cell = json.loads(line)
        key = (cell["client"], cell["feature"])
        cells[key] = cells.get(key, True) and cell["ok"]
    known = dict(line.split("==", 1) for line in Path(versions).read_text().split("\n") if line)
    tested = {client for client, _ in cells}
    unknown = tested - {client for client, _, _ in CLIENTS}
    if unknown:
        return f"no row for {unknown}: add it to `CLIENTS` in tests/clients/table.py"
    document = DOCUMENT.read_text()
    made = section(document, "table", table(cells, known, tested, rows_of(document)))
    made = section(made, "recipes", recipes())
    if write:
        DOCUMENT.write_text(made)
        return None
    made, improved = keep_failures(made, document)
    for cell in improved:
        print(f"docs/clients.md: {cell} works now; run `scripts/clients --write`")
    if without_versions(made) != without_versions(document):
        DOCUMENT.with_suffix(".md.new").write_text(made)
        return "docs/clients.md does not fit the tests: run `scripts/clients --write`, then look at the difference"
    return None


def keep_failures(made, document):
    """The document with cells that failed when it was written and pass now, as they were; and which those are."""
    rows, lines, improved = rows_of(document), [], []
    for line in made.splitlines():
        cells = line.split("|")
        before = rows.get(cells[1].strip(), "").split("|") if len(cells) == 10 else []
        for index, cell in enumerate(before):
            if cell.strip() == "**no**" and cells[index].strip() == "yes":
                cells[index] = cell
                improved.append(f"{cells[1].strip()}, column {index - 2}")
        lines.append("|".join(cells))
    return "\n".join(lines) + "\n", improved


def rows_of(document):
    """The rows that are there, for clients that were not tested this time."""
    rows = [line for line in document.splitlines() if line.startswith("| ")]
    return {row.split("|")[1].strip(): row for row in rows}


def table(cells, known, tested, rows):
    head = ["client", "version tested", "text", "streaming", "tools", "reasoning kept", "structured output", "setting needed"]
    lines = [row_of(head), "|" + "---|" * len(head)]
    for client, package, setting in CLIENTS:
        if client not in tested:
            if client in rows:
                lines.append(rows[client])
            continue
        marks = [mark(cells.get((client, feature))) for feature in FEATURES]
        lines.append(row_of([client, known.get(package, "?"), *marks, setting]))
    return "\n".join(lines)


def row_of(cells):
    return "| " + " | ".join(cells) + " |"


def mark(ok):
    return {None: "–", True: "yes", False: "**no**"}[ok]


def recipes():
    parts = []
    for name, file, language, path in RECIPES:
        text = (ROOT / "tests" / "clients" / file).read_text()
        found = re.search(rf"^( *)(?:#|//) recipe: {re.escape(name)}\n(.*?)^ *(?:#|//) end$", text, re.M | re.S)
        indent, code = len(found[1]), found[2]
        code = "\n".join(line[indent:] for line in code.splitlines()).strip()
        code = plain(code, language)
        file = f"In `{path}`:\n\n" if path else ""
        parts.append(f"### {name}\n\n{file}```{language}\n{code}\n```")
    return "\n\n".join(parts)


def plain(code, language):
    """The code of a test as a user would write it."""
    if language == "toml":
        code = code.split('"""')[1].strip()
    if language == "json":
        namespace = {}
        exec(code, namespace)
        code = json.dumps(namespace["CONFIG"], indent=2)
    code = code.replace("@BASE_URL@", ADDRESS).replace("wire.base_url", f'"{ADDRESS}"')
    code = code.replace("{ baseURL,", f'{{ baseURL: "{ADDRESS}",').replace("(base_url)", f'("{ADDRESS}")')
    return code


def section(document, name, text):
    begin, end = BEGIN.format(name), END.format(name)
    head, rest = document.split(begin)
    _, tail = rest.split(end)
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"


def without_versions(document):
    lines = []
    for line in document.splitlines():
        cells = line.split("|")
        if len(cells) == 10:
            cells[2] = ""
        lines.append("|".join(cells))
    return lines


if __name__ == "__main__":
    problem = main(sys.argv[1], sys.argv[2], "--write" in sys.argv[3:])
    if problem:
        sys.exit(f"tests/clients/table.py: {problem}")
