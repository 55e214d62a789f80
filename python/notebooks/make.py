"""Runs the cells of a_day.py and writes a_day.ipynb: `python make.py`. Needs nbclient and ipykernel.

In a_day.py `# %%` begins a code cell, and `# %% [markdown]` a text cell, as in Jupytext and VS Code.
"""

import re
from pathlib import Path

import nbclient
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HERE = Path(__file__).parent


def cells(text: str):
    for kind, body in re.findall(r"^# %%( \[markdown\])?\n(.*?)(?=^# %%|\Z)", text, re.M | re.S):
        body = body.strip("\n")
        yield new_markdown_cell(re.sub(r"^# ?", "", body, flags=re.M)) if kind else new_code_cell(body)


def main() -> None:
    notebook = new_notebook(cells=list(cells((HERE / "a_day.py").read_text())))
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02}"
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": HERE.parents[1]}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, HERE / "a_day.ipynb")


if __name__ == "__main__":
    main()
