#!/usr/bin/python3
"""The steps of the demonstration: demo.py FOLDER. Run by demo.sh, inside a desktop.

Every step is one run of agent-desktop, shown as it is typed. The last word has the calculator itself: its display is
read once more by another accessibility library (libatspi), which knows nothing of agent-desktop.
"""
import base64
import html
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.abspath(sys.argv[1])
BINARY = os.environ["AGENT_DESKTOP_BIN"]
LOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../crates/testkit/fixtures/look.py")
APP = "gnome-calculator"
KEYS = ["1", "2", "×", "1", "2", "="]
EXPECTED = "144"

steps = []
state = tempfile.TemporaryDirectory(prefix="agent-desktop-demo-")
environment = {**os.environ, "AGENT_DESKTOP_HOME": os.path.join(state.name, "state"), "GSK_RENDERER": "cairo"}


class Failed(Exception):
    """A step that did not do what it should; the message is for people."""


def say(text=""):
    print(text, flush=True)


def run(*arguments, quiet=False):
    """One step. Gives standard output, and notes everything for the page."""
    command = "agent-desktop " + shlex.join(arguments)
    start = time.monotonic()
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, env=environment, timeout=90, check=False)
    took = (time.monotonic() - start) * 1000
    steps.append({"command": command, "ms": took, "code": done.returncode, "output": done.stdout, "stderr": done.stderr})
    say(f"$ {command}   ({took:.0f} ms)")
    if not quiet:
        say(done.stdout.rstrip())
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}: {command}\n{done.stdout}{done.stderr}")
    return done.stdout


def ask(*arguments):
    """A step whose reply is an envelope; gives its data."""
    output = run(*arguments, quiet=True)
    try:
        envelope = json.loads(output)
    except ValueError as error:
        raise Failed(f"no JSON from: agent-desktop {shlex.join(arguments)}\n{output}") from error
    if not envelope.get("ok"):
        raise Failed(json.dumps(envelope, indent=2, ensure_ascii=False))
    return envelope["data"]


def find_key(name):
    """The ref of a button. A toolkit that joins a label with itself calls it `1 1`."""
    data = ask("find", "--app", APP, "--role", "button", "--name", name)
    for match in data["matches"]:
        if set(match["name"].split()) == {name} and match["ref_id"]:
            return match["ref_id"]
    raise Failed(f"no button {name!r} among {[m['name'] for m in data['matches']]}")


def find_display():
    """The ref of the field that can be written to; the other text is for messages."""
    data = ask("find", "--app", APP, "--role", "textfield")
    for match in data["matches"]:
        if "readonly" not in match["states"] and match["ref_id"]:
            return match["ref_id"]
    raise Failed(f"no display among {data['matches']}")


def other_reader():
    """What the calculator shows, by libatspi."""
    done = subprocess.run(["/usr/bin/python3", LOOK, "find", APP, "--role", "61"], capture_output=True, text=True,
                          timeout=30, check=False)
    texts = [o["text"] for o in json.loads(done.stdout or "[]") if "editable" in o["states"]]
    return (texts or [""])[0]


def demonstrate():
    run("version")
    say()
    launched = ask("launch", APP)
    window = launched.get("window") or {}
    say(f"  {launched['app']}, pid {launched['pid']}, window {window.get('id')} {window.get('title')!r}")
    say()
    run("snapshot", "--app", APP, "-i", "--format", "outline")
    say()
    refs = {name: find_key(name) for name in dict.fromkeys(KEYS)}
    say("  " + ", ".join(f"{name} is {ref}" for name, ref in refs.items()))
    say()
    for name in KEYS:
        data = ask("click", refs[name])
        say(f"  {name}: {data['disposition']['delivery']}")
    say()
    display = find_display()
    value, end = None, time.monotonic() + 5
    while value != EXPECTED and time.monotonic() < end:
        value = ask("get", display, "--property", "value")["value"]
    say(f"  agent-desktop reads {value!r}")
    picture = os.path.join(FOLDER, "calculator.png")
    shot = ask("screenshot", picture, "--app", APP)
    say(f"  {shot['width']}×{shot['height']} pixels")
    say()
    other = other_reader()
    say("Proof: 12 × 12")
    say(f"  agent-desktop reads            {value}")
    say(f"  the calculator itself shows    {other}   (read by libatspi)")
    say(f"  in {len(steps)} commands, {sum(s['ms'] for s in steps):.0f} ms together")
    if value != EXPECTED or other != EXPECTED:
        raise Failed(f"expected {EXPECTED} from both")
    return f"12 × 12 = {value}; the calculator itself shows {other}, as read by libatspi."


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>agent-desktop: the demonstration</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h2 { font: 600 1rem ui-monospace, monospace; margin: 2rem 0 .25rem } small { color: #666; font-weight: 400 }
pre { background: #f4f4f2; padding: .75rem; overflow: auto; max-height: 26rem; font-size: .8rem; border-radius: 4px }
img { border: 1px solid #ccc; max-width: 100% } .proof { font-size: 1.2rem; font-weight: 600 } .failed { color: #a00 }
</style>
<h1>agent-desktop computes 12 × 12 in gnome-calculator</h1>
"""


def pretty(output):
    try:
        return json.dumps(json.loads(output), indent=2, ensure_ascii=False)
    except ValueError:
        return output.rstrip()


def write_page(verdict, failed):
    parts = [PAGE, f'<p class="{"failed" if failed else "proof"}">{html.escape(verdict)}</p>']
    picture = os.path.join(FOLDER, "calculator.png")
    if os.path.exists(picture):
        with open(picture, "rb") as file:
            data = base64.b64encode(file.read()).decode()
        parts.append(f'<p><img alt="The calculator after the last step" src="data:image/png;base64,{data}"></p>')
    for number, step in enumerate(steps, 1):
        parts.append(f"<h2>{number}. {html.escape(step['command'])} <small>{step['ms']:.0f} ms, exit {step['code']}</small></h2>")
        parts.append(f"<pre>{html.escape(pretty(step['output']))}</pre>")
        if step["stderr"].strip():
            parts.append(f"<pre>{html.escape(step['stderr'].rstrip())}</pre>")
    path = os.path.join(FOLDER, "index.html")
    with open(path, "w", encoding="utf-8") as page:
        page.write("\n".join(parts) + "\n</html>\n")
    return path


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for name in ("calculator.png", "index.html"):
        if os.path.exists(os.path.join(FOLDER, name)):
            os.remove(os.path.join(FOLDER, name))
    failed = False
    try:
        verdict = demonstrate()
    except (Failed, subprocess.TimeoutExpired, KeyError) as error:
        failed, verdict = True, f"The demonstration failed. {type(error).__name__}: {error}"
        say(verdict)
    try:
        run("close-app", APP, quiet=True)
    except (Failed, subprocess.TimeoutExpired):
        pass
    page = write_page(verdict, failed)
    say()
    if not failed:
        say(f"Screenshot: {os.path.join(FOLDER, 'calculator.png')}")
    say(f"All steps:  {page}")
    state.cleanup()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
