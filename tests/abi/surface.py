# SPDX-License-Identifier: MIT
"""Reads the public headers into one model: functions, structs, enums, callbacks, and what their comments say.

The headers keep to a small subset of C (declarations only; see docs), so a page of Python reads them without a
compiler front end, and refuses what is outside the subset. That it reads them right is checked from the other side:
api.py compiles a redeclaration of everything it found against the headers, and takes sizes from the compiler.
"""
import glob
import os
import re
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(ROOT, "include")


class Refused(Exception):
    """A header holds something that is outside the subset; the text says where."""


def headers(include=INCLUDE):
    """Names as they are included: muster/base.h, ... Without those of inline_headers()."""
    found = glob.glob(os.path.join(include, "**", "*.h"), recursive=True)
    return sorted(set(os.path.relpath(path, include) for path in found) - set(inline_headers(include)))


def inline_headers(include=INCLUDE):
    """Headers with function bodies, for C and C++ only: they add nothing to the surface."""
    return sorted(os.path.relpath(path, include) for path in glob.glob(os.path.join(include, "muster", "inline", "*.h")))


TOKEN = re.compile(r"""
    (?P<after>/\*\*<.*?\*/) | (?P<doc>/\*\*.*?\*/) | (?P<skip>/\*.*?\*/|//[^\n]*|\s+)
  | (?P<word>[A-Za-z_]\w*) | (?P<number>-?\d\w*) | (?P<punct><<|[-+|~(){}\[\],;*=])
""", re.S | re.X)


def tokens(text, where):
    """(kind, text, line) of everything that counts; preprocessor lines and what only C++ sees are blanked first."""
    kept, cplusplus = [], False
    continued = False
    for line in text.split("\n"):
        directive = continued or line.lstrip().startswith("#")
        if re.match(r"\s*#\s*ifdef\s+__cplusplus", line):
            cplusplus = True
        elif cplusplus and re.match(r"\s*#\s*(endif|else)", line):
            cplusplus = False
        kept.append("" if directive or cplusplus else line)
        continued = directive and line.endswith("\\")
    text = "\n".join(kept)
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if not found:
            raise Refused(f"{where}:{text.count(chr(10), 0, at) + 1}: unexpected {text[at:at + 20]!r}")
        if found.lastgroup != "skip":
            yield found.lastgroup, found.group(), text.count("\n", 0, at) + 1
        at = found.end()


def comment_text(comment):
    """A doc comment without its stars."""
    body = re.sub(r"^/\*\*<?|\*/$", "", comment)
    return "\n".join(re.sub(r"^\s*\*? ?", "", line).rstrip() for line in body.split("\n")).strip()


def read_aliases():
    """name: text of each alias of docs/Doxyfile that stands for @retval lines."""
    with open(os.path.join(ROOT, "docs", "Doxyfile"), encoding="utf-8") as file:
        found = re.findall(r'"(\w+)(?:\{\d\})?=([^"]*)"', file.read())
    return {name: text.replace("^^", "\n") for name, text in found if "@retval" in text or "@served" in text}


ALIASES = read_aliases()


def expand(text):
    """The text with the aliases of docs/Doxyfile in full, as Doxygen sees it."""
    for name in sorted(ALIASES, key=len, reverse=True):
        text = re.sub(r"@%s\b(?:\{([^}]*)\})?" % name,
                      lambda found, name=name: expand(ALIASES[name].replace("\\1", found.group(1) or "")), text)
    return text


def parse_doc(comment):
    """Splits a doc comment into brief, detail and its tags."""
    doc = {"brief": "", "detail": "", "params": [], "retvals": [], "returns": None, "threads": None, "blocks": None,
           "since": None}
    if comment is None:
        return doc
    text = expand(comment_text(comment))
    for tag in ("threads", "blocks"):
        found = re.search(r"@%s\{([^}]*)\}" % tag, text)
        if found:
            doc[tag] = " ".join(found.group(1).split())
            text = text[:found.start()] + text[found.end():]
    found = re.search(r"@since\s+(\S+)", text)
    if found:
        doc["since"] = found.group(1)
        text = text[:found.start()] + text[found.end():]
    parts = re.split(r"(?m)^\s*@(?=param|retval|returns?\b)", text)
    prose = parts[0].strip()
    first = re.match(r"(?s)(.*?\.)(\s|$)(.*)", prose)
    doc["brief"] = " ".join((first.group(1) if first else prose).split())
    doc["detail"] = (first.group(3) if first else "").strip()
    for part in parts[1:]:
        part = " ".join(part.split())
        found = re.match(r"param(?:\[(\w+(?:,\w+)?)\])? (\w+) ?(.*)", part)
        if found:
            doc["params"].append({"direction": found.group(1) or "", "name": found.group(2), "text": found.group(3)})
            continue
        found = re.match(r"retval (\w+) ?(.*)", part)
        if found:
            doc["retvals"].append({"name": found.group(1), "text": found.group(2)})
            continue
        found = re.match(r"returns? ?(.*)", part)
        if found:
            doc["returns"] = found.group(1)
    return doc


def spell(words):
    """C spelling of a token list: `const char *const *`."""
    text = " ".join(words)
    return re.sub(r"\* (?=[*c])", "*", text)


def make_type(words):
    base = [word for word in words if word not in ("const", "*", "struct", "enum", "volatile")]
    return {"c": spell(words), "name": " ".join(base), "pointers": words.count("*"),
            "const": "const" in words[:words.index("*")] if "*" in words else "const" in words, "array": None}


class Reader:
    """One header. next() walks its tokens; a declaration takes the doc comment that stands right before it."""

    def __init__(self, name, text, model):
        self.name, self.model, self.at = name, model, 0
        self.all = list(tokens(text, name))

    def refuse(self, why):
        line = self.all[min(self.at, len(self.all) - 1)][2]
        raise Refused(f"{self.name}:{line}: {why}")

    def peek(self):
        return self.all[self.at][:2] if self.at < len(self.all) else ("end", "")

    def next(self):
        token = self.peek()
        self.at += 1
        return token

    def take(self, text):
        if self.peek()[1] != text:
            self.refuse(f"expected {text!r}, found {self.peek()[1]!r}")
        self.at += 1

    def word(self):
        kind, text = self.next()
        if kind != "word":
            self.at -= 1
            self.refuse(f"expected a name, found {text!r}")
        return text

    def doc(self):
        found = None
        while self.peek()[0] == "doc":
            found = self.next()[1]
        return found

    def after(self, before):
        """Doc comment of a member: the trailing form wins."""
        return self.next()[1] if self.peek()[0] == "after" else before

    def type_words(self):
        words = []
        while self.peek()[0] == "word" or self.peek()[1] == "*":
            words.append(self.next()[1])
        return words

    def params(self):
        self.take("(")
        found = []
        if self.peek()[1] == ")":
            self.refuse("() declares no prototype in C: write (void)")
        while True:
            declared = self.declarator()
            if declared["type"] == "void" and not declared["name"]:
                pass
            elif isinstance(declared["type"], dict) and declared["type"]["c"] == "void":
                pass
            else:
                found.append({"name": declared["name"], "type": declared["type"]})
            kind, text = self.next()
            if text == ")":
                return found
            if text != ",":
                self.at -= 1
                self.refuse(f"expected ',' or ')', found {text!r}")

    def declarator(self):
        """`type name`, `type name[N]` or `type (*name)(params)`."""
        words = self.type_words()
        if self.peek()[1] == "(" and self.at + 1 < len(self.all) and self.all[self.at + 1][1] == "*":
            self.take("(")
            self.take("*")
            name = self.word()
            self.take(")")
            params = self.params()
            callback = {"returns": make_type(words), "params": params}
            return {"name": name, "type": {"c": None, "name": None, "pointers": 1, "const": False, "array": None,
                                           "callback": callback}}
        if words == ["void"]:
            return {"name": None, "type": make_type(words)}
        if len(words) < 2 or words[-1] == "*":
            self.refuse("a type and a name are needed")
        made = {"name": words[-1], "type": make_type(words[:-1])}
        if self.peek()[1] == "[":
            self.take("[")
            made["type"]["array"] = int(self.next()[1], 0)
            self.take("]")
        return made

    def fields(self):
        self.take("{")
        found = []
        while True:
            before = self.doc()
            if self.peek()[1] == "}":
                self.take("}")
                return found
            declared = self.declarator()
            self.take(";")
            declared["doc"] = self.after(before)
            declared["doc"] = comment_text(declared["doc"]) if declared["doc"] else ""
            found.append(declared)

    def enum(self, doc):
        name = self.word()
        self.take("{")
        values = []
        while True:
            before = self.doc()
            if self.peek()[1] == "}":
                self.take("}")
                break
            value = {"name": self.word(), "value": None}
            if self.peek()[1] == "=":
                while self.peek()[1] not in (",", "}") and self.peek()[0] != "after":
                    self.next()
            if self.peek()[1] == ",":
                self.take(",")
            text = self.after(before)
            value["doc"] = comment_text(text) if text else ""
            values.append(value)
        self.take(";")
        self.model["enums"].append({"name": name, "header": self.name, "doc": parse_doc(doc), "values": values})

    def struct(self, doc):
        """After `struct`: a forward declaration or a body; returns the tag and whether there was a body."""
        tag = self.word()
        if self.peek()[1] != "{":
            return tag, False
        self.model["structs"].append({"name": tag, "header": self.name, "doc": parse_doc(doc),
                                      "fields": self.fields()})
        return tag, True

    def typedef(self, doc):
        if self.peek()[1] == "struct":
            self.next()
            start = self.at
            tag, _ = self.struct(doc)
            if self.peek()[0] == "word":
                name = self.word()
                self.take(";")
                if name != tag:
                    self.refuse(f"typedef {name} must be named as its struct {tag}")
                self.model["typedefs"].setdefault(name, (self.name, doc))
                if doc:
                    self.model["typedefs"][name] = (self.name, doc)
                return
            self.at = start - 1
        if self.peek()[1] in ("enum", "union"):
            self.refuse("typedef of an enum or union: use a named enum and an int32_t")
        declared = self.declarator()
        self.take(";")
        entry = {"name": declared["name"], "header": self.name, "doc": parse_doc(doc)}
        if "callback" in declared["type"]:
            self.model["callbacks"].append({**entry, **declared["type"]["callback"]})
        else:
            self.model["aliases"].append({**entry, "type": declared["type"]})

    def function(self, doc):
        words = self.type_words()
        if len(words) < 2:
            self.refuse("a return type and a name are needed")
        params = self.params()
        self.take(";")
        self.model["functions"].append({"name": words[-1], "header": self.name, "returns": make_type(words[:-1]),
                                        "params": params, "doc": parse_doc(doc)})

    def read(self):
        while self.peek()[0] != "end":
            doc = self.doc()
            kind, text = self.next()
            if kind == "end":
                return
            if text == "typedef":
                self.typedef(doc)
            elif text == "enum":
                self.enum(doc)
            elif text == "struct":
                self.struct(doc)
                self.take(";")
            elif text == "MUSTER_API":
                self.function(doc)
            else:
                self.at -= 1
                self.refuse(f"not in the subset of C that every consumer reads: {text!r}")


def compile_and_run(source, include=INCLUDE):
    """Output of a C program that sees the headers."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ask.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        program = os.path.join(folder, "ask")
        command = [os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", "-DMUSTER_API=", "-I",
                   include, path, "-o", program]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            raise Refused("the headers as read do not agree with the compiler:\n" + made.stderr)
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def declare(type_, name):
    """C declaration of a name with a type of the model."""
    if "callback" in type_:
        callback = type_["callback"]
        return f"{callback['returns']['c']} (*{name})({parameters(callback['params'])})"
    array = f"[{type_['array']}]" if type_["array"] is not None else ""
    space = "" if type_["c"].endswith("*") or not name else " "
    return f"{type_['c']}{space}{name or ''}{array}"


def parameters(params):
    return ", ".join(declare(param["type"], param["name"]) for param in params) or "void"


def measure(model, include=INCLUDE):
    """Asks the compiler for sizes, offsets and values, and makes it agree to every declaration that was read."""
    lines = ["#include <stdio.h>", "#include <stddef.h>"]
    lines += [f"#include <{name}>" for name in model["headers"]]
    lines += [f"{function['returns']['c']} {function['name']}({parameters(function['params'])});"
              for function in model["functions"]]
    for callback in model["callbacks"]:
        lines.append(f"extern {callback['name']} check_{callback['name']};")
        lines.append(f"extern {callback['returns']['c']} (*check_{callback['name']})({parameters(callback['params'])});")
    lines.append("int main(void) {")
    for struct in model["structs"]:
        name = struct["name"]
        lines.append(f'    printf("%zu %zu\\n", sizeof({name}), _Alignof({name}));')
        for number, field in enumerate(struct["fields"]):
            lines.append(f'    printf("%zu %zu\\n", offsetof({name}, {field["name"]}), '
                         f'sizeof((({name} *)0)->{field["name"]}));')
            # A pointer to the field must have the type that was read; a wrong one does not compile.
            pointer = "(*p%d)" % number
            lines.append(f"    {{ {declare(field['type'], pointer)} = &(({name} *)0)->{field['name']}; (void)p{number}; }}"
                         if "callback" not in field["type"] else
                         f"    {{ {declare(field['type'], 'p')} = (({name} *)(void *)&(char[sizeof({name})]){{0}})->"
                         f"{field['name']}; (void)p; }}")
    for enum in model["enums"]:
        for value in enum["values"]:
            lines.append(f'    printf("%lld\\n", (long long){value["name"]});')
    lines.append("    return 0;\n}")
    answers = iter(compile_and_run("\n".join(lines) + "\n", include).split("\n"))
    for struct in model["structs"]:
        struct["size"], struct["align"] = map(int, next(answers).split())
        for field in struct["fields"]:
            field["offset"], field["size"] = map(int, next(answers).split())
    for enum in model["enums"]:
        for value in enum["values"]:
            value["value"] = int(next(answers))


def read(include=INCLUDE):
    """The whole surface. Lists keep the order of the headers; every entry names its header."""
    model = {"headers": headers(include), "aliases": [], "callbacks": [], "enums": [], "structs": [], "functions": [],
             "typedefs": {}}
    for name in model["headers"]:
        with open(os.path.join(include, name), encoding="utf-8") as file:
            Reader(name, file.read(), model).read()
    bodies = {struct["name"] for struct in model["structs"]}
    typedefs = model.pop("typedefs")
    for struct in model["structs"]:
        if not struct["doc"]["brief"] and typedefs.get(struct["name"], (None, None))[1]:
            struct["doc"] = parse_doc(typedefs[struct["name"]][1])
    model["opaque"] = [{"name": name, "header": header, "doc": parse_doc(doc)}
                       for name, (header, doc) in typedefs.items() if name not in bodies]
    measure(model, include)
    return model
