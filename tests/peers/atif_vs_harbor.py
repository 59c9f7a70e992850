"""Checks ATIF documents with Harbor's own model.

Usage: atif_vs_harbor.py HARBOR FOLDER...   (HARBOR: a folder with the unpacked wheel; needs pydantic)

Harbor asks for a newer Python than many machines have and for hundreds of megabytes of dependencies; its model of a
trajectory needs neither. So only that part of the wheel is imported.
"""

import importlib.machinery
import json
import sys
import types
from pathlib import Path


def model(wheel):
    for name in ("harbor", "harbor.models"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(wheel, *name.split(".")))]
        package.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = package
    from harbor.models.trajectories import Trajectory

    return Trajectory


def main():
    trajectory = model(sys.argv[1])
    files = sorted(path for folder in sys.argv[2:] for path in Path(folder).rglob("*.atif.json"))
    steps = calls = results = wrong = 0
    for path in files:
        try:
            document = trajectory.model_validate_json(path.read_bytes())
        except ValueError as error:
            wrong += 1
            print(f"{path}: {error}")
            continue
        if document.to_json_dict() != json.loads(path.read_bytes()):
            # Its writer leaves nothing out and adds nothing: so does ours, nulls included.
            lost = json.dumps(document.to_json_dict(), sort_keys=True) != json.dumps(
                without_nulls(json.loads(path.read_bytes())), sort_keys=True)
            if lost:
                wrong += 1
                print(f"{path}: Harbor reads something else than is written")
        steps += len(document.steps)
        for step in document.steps:
            calls += len(step.tool_calls or [])
            results += len(step.observation.results) if step.observation else 0
    print(f"{len(files)} documents, {steps} steps, {calls} calls, {results} results; {wrong} wrong")
    sys.exit(bool(wrong) or not files)


def without_nulls(value):
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
