# Compares the public symbols of the modules with the files in Docs/API, or writes those files. Called by Scripts/api.
#
# usage: api.py compare|update VERSION FOLDER GRAPHS MODULE...
#
# VERSION is that of the compiler. GRAPHS has a folder for each platform, with the symbol graphs of each module in a folder, and
# the file "exports" with a line "MODULE IMPORTED" for each module that another one exports.
import json
import pathlib
import re
import sys

PLATFORMS = ["Linux", "iOS", "macOS"]

# The compiler finds these conformances itself, and which of them it reports depends on its version.
IMPLICIT = {"BitwiseCopyable", "Copyable", "Escapable", "SendableMetatype"}


def declaration(symbol):
    """The declaration as the compiler prints it, with the path of the symbol in place of its name."""
    path = "".join(name + "." for name in symbol["pathComponents"][:-1])
    text, named = "", False
    for fragment in symbol["declarationFragments"]:
        kind, spelling = fragment["kind"], fragment["spelling"]
        if not named and (kind == "identifier" or (kind == "keyword" and spelling in ("init", "subscript"))):
            text, named = text + path, True
        text += spelling
    return " ".join(text.split())


def clauses(constraints, text):
    """A "where" clause of the constraints that the text does not contain."""
    signs = {"conformance": ":", "superclass": ":", "sameType": "=="}
    found = {f"{item['lhs']} {signs[item['kind']]} {item['rhs']}" for item in constraints if item["rhs"] not in IMPLICIT}
    missing = sorted(clause for clause in found if clause not in text)
    return (", " if " where " in text else " where ") + ", ".join(missing) if missing else ""


def read(folder):
    """The lines of a module on one platform, each with its place in the order, and its symbols without a doc comment."""
    exports = [line.split() for line in (folder.parent / "exports").read_text().splitlines()]
    lines = {f"import {imported}": ((), 0) for module, imported in exports if module == folder.name}
    undocumented = set()
    graphs = [json.loads(file.read_text()) for file in sorted(folder.glob("*.symbols.json"))]
    paths = {symbol["identifier"]["precise"]: tuple(symbol["pathComponents"]) for graph in graphs for symbol in graph["symbols"]}
    for graph in graphs:
        relations = graph["relationships"]
        requirements = {relation["source"] for relation in relations if relation["kind"] == "requirementOf"}
        # A symbol that satisfies a requirement of a protocol has the comment of that requirement.
        inherited = {relation["source"] for relation in relations if "sourceOrigin" in relation}
        protocols = set()
        for symbol in graph["symbols"]:
            kind, identifier = symbol["kind"]["identifier"], symbol["identifier"]["precise"]
            path = paths[identifier]
            if kind == "swift.extension":
                continue
            if kind == "swift.protocol":
                protocols.add(identifier)
            text = declaration(symbol)
            text += clauses(symbol.get("swiftExtension", {}).get("constraints", []), text)
            lines[f"requirement {text}" if identifier in requirements else text] = (path, 0)
            for item in symbol.get("availability", []):
                if item.get("isUnconditionallyDeprecated") or "deprecated" in item:
                    lines[f"deprecated {text}: {item.get('message', '')}"] = (path, 1)
            # The compiler has no location for what it synthesizes.
            if "docComment" not in symbol and "location" in symbol and identifier not in inherited:
                file, line = symbol["location"]["uri"], symbol["location"]["position"]["line"] + 1
                undocumented.add(f"{re.sub('^.*/(?=Modules/)', '', file)}:{line}: {'.'.join(path)} has no doc comment")
        for relation in relations:
            # The declaration of a protocol names those that it inherits from.
            if relation["kind"] != "conformsTo" or relation["source"] in protocols:
                continue
            path = paths[relation["source"]]
            target = paths.get(relation["target"]) or relation["targetFallback"].split(".")[1:]
            if target[-1] not in IMPLICIT:
                text = f"{'.'.join(path)}: {'.'.join(target)}"
                lines[text + clauses(relation.get("swiftConstraints", []), text)] = (path, 1)
    return lines, undocumented


def api(graphs, module):
    """The lines of a module, in order. A line ends with its platforms, unless it is the same on all of them."""
    platforms, places, undocumented = {}, {}, set()
    for platform in PLATFORMS:
        lines, missing = read(graphs / platform / module)
        undocumented |= missing
        for line, place in lines.items():
            platforms.setdefault(line, []).append(platform)
            places[line] = place
    return [
        line if platforms[line] == PLATFORMS else f"{line}  // {', '.join(platforms[line])}"
        for line in sorted(places, key=lambda line: (places[line], line))
    ], undocumented


def breaking(line, new, old):
    """Whether a new line breaks a client that compiled: a case or a requirement of what existed before."""
    added = re.match(r"(?P<kind>requirement|case|indirect case) (?P<declaration>.*?)(  // .*)?$", line)
    if not added:
        return False
    # A default implementation has the same declaration as the requirement.
    if added["kind"] == "requirement" and any(other.partition("  // ")[0] == added["declaration"] for other in new):
        return False
    owner = re.search(r"[A-Z]\w*(\.[A-Z]\w*)*(?=\.)", added["declaration"])[0]
    return any(re.search(rf"\b(enum|protocol) {re.escape(owner)}\b(?!\.)", other) for other in old)


def main():
    mode, version, folder, graphs = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    modules = sys.argv[5:]
    removed = added = undocumented = 0
    older = False
    for file in sorted({f"{module}.txt" for module in modules} | {file.name for file in folder.glob("*.txt")}):
        module, file = file.removesuffix(".txt"), folder / file
        header, *old = file.read_text().splitlines() if file.exists() else [""]
        new, missing = api(graphs, module) if module in modules else ([], set())
        undocumented += len(missing)
        for line in sorted(missing):
            print(line)
        if mode == "update":
            if new:
                header = f"// The public API of {module}, as Swift {version} prints it. Scripts/api --update writes this file."
                file.write_text("\n".join([header, *new, ""]))
            else:
                file.unlink()
            continue
        written = re.search(r"Swift (\d+)\.(\d+) ", header)
        older |= written is not None and tuple(map(int, written.groups())) > tuple(map(int, version.split(".")))
        differences = [("-", line) for line in old if line not in new] + [("+", line) for line in new if line not in old]
        if differences:
            print(f"{module}:")
        for sign, line in differences:
            breaks = sign == "+" and breaking(line, new, old)
            print(f"  {sign} {line}" + ("  (breaks clients)" if breaks else ""))
            removed += sign == "-" or breaks
            added += sign == "+" and not breaks
    if mode == "compare" and older and removed + added:
        print(f"The files in {folder} are of a later compiler, so these differences are no failures.")
        removed = added = 0
    if removed:
        print(
            f"Lines that are removed or changed, or break clients that conform to a protocol or switch over cases: {removed}.\n"
            "Restore the declarations, and deprecate them instead. If the break is intended, state in CHANGELOG.md how a\n"
            "client adapts, and run Scripts/api --update."
        )
    elif added:
        print(f"New lines: {added}. Run Scripts/api --update, and commit {folder} together with the change.")
    sys.exit(1 if removed + added + undocumented else 0)


main()
