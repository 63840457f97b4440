"""Default attributes of MuJoCo's XML, written out into the elements that they are meant for.

A class inherits from the class that it stands in. An element takes the class that it names, or the
`childclass` of the nearest body that has one, or "main", and of that what it does not say itself.
"""

from xml.etree.ElementTree import Element

_TAKEN = {"joint", "geom", "site", "light", "camera"}
_Classes = dict[str, dict[str, dict[str, str]]]  # class -> tag -> attributes


def spell_out(root: Element) -> None:
    """Move all defaults of a file into its bodies' elements, and take `<default>` away.

    Raises:
        ValueError: a class that is not defined, or one without a name inside of another.
    """
    sections = [part for part in root if part.tag == "default"]
    classes: _Classes = {"main": {}}
    for section in sections:
        _read(classes, section)
        root.remove(section)
    waiting = [(world, "main") for world in root.findall("worldbody")]
    while waiting:
        body, outer = waiting.pop()
        inside = _known(classes, body.attrib.pop("childclass", outer))
        for child in body:
            if child.tag == "body":
                waiting.append((child, inside))
            elif child.tag in _TAKEN:
                chosen = _known(classes, child.attrib.pop("class", inside))
                child.attrib = classes[chosen].get(str(child.tag), {}) | child.attrib


def _read(classes: _Classes, section: Element) -> None:
    """Add the classes of one section, each after the class that it inherits from."""
    waiting = [(section, section.get("class", "main"), "main")]
    while waiting:
        part, name, above = waiting.pop()
        # what a section repeats is added to what an earlier one has said
        own = classes.setdefault(name, {tag: dict(said) for tag, said in classes[above].items()})
        for child in part:
            if child.tag == "default":
                continue
            own[str(child.tag)] = own.get(str(child.tag), {}) | child.attrib
        for child in part.findall("default"):
            if "class" not in child.attrib:
                raise ValueError("from_mjcf: a <default> within another has no class; name it")
            waiting.append((child, child.attrib["class"], name))


def _known(classes: _Classes, name: str) -> str:
    if name not in classes:
        there = ", ".join(sorted(classes))
        raise ValueError(f"from_mjcf: class={name!r} has no <default>; there are {there}")
    return name
