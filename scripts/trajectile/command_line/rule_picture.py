"""The picture of the rules in README.md, made from the graph that Snakemake prints.

To draw it anew: snakemake --rulegraph mermaid-js --config run_name=new exports=parquet sandbox=docker |
python -m trajectile.command_line.rule_picture README.md
"""

import re
from collections import defaultdict

NODE = re.compile(r"^\s*(\w+)\[(\w+)\]$", re.M)
EDGE = re.compile(r"^\s*(\w+) --> (\w+)$", re.M)
PICTURE = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.S)


def picture(drawn: str) -> str:
    """Return a mermaid graph of rules by their names, without colours and without what follows from other edges."""
    names = dict(NODE.findall(drawn))
    needs: dict[str, set[str]] = defaultdict(set)
    for source, target in EDGE.findall(drawn):
        needs[names[target]].add(names[source])
    lines = [f"    {' & '.join(sorted(_direct(needs, rule)))} --> {rule}\n" for rule in sorted(needs)]
    return "".join(["flowchart LR\n", *lines])


def _direct(needs: dict[str, set[str]], rule: str) -> set[str]:
    return needs[rule].difference(*(_before(needs, source) for source in needs[rule]))


def _before(needs: dict[str, set[str]], rule: str) -> set[str]:
    sources = needs.get(rule, set())
    return sources.union(*(_before(needs, source) for source in sources))


def with_picture(text: str, drawn: str) -> str:
    """Return a document with a current picture in its mermaid block."""
    return PICTURE.sub(picture(drawn), text)


if __name__ == "__main__":
    import sys
    from pathlib import Path

    file = Path(sys.argv[1])
    file.write_text(with_picture(file.read_text(encoding="utf-8"), sys.stdin.read()), encoding="utf-8")
