#!/usr/bin/python3
"""Measures cold snapshots of real applications against the floor probe, in one run, inside a private desktop.

  scripts/bench.sh [--apps A,B] [--runs N]      (that script starts the desktop and runs this)

Cold means: a new process each time, the application warm and settled. The readers take turns, round by round, since a
shared machine's speed drifts and a ratio must not. Prints a Markdown table; raw numbers go to target/bench/.
"""
import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIXTURES = os.path.join(ROOT, "crates/testkit/fixtures")
OUT = os.path.join(ROOT, "target/bench")
WORK = os.path.join(os.environ["DESK"], "tmp")
BINARY = os.environ.get("AGENT_DESKTOP_BIN", os.path.join(ROOT, "target/release/agent-desktop"))
PYTHON = "/usr/bin/python3"
LIMIT = 60
OFFICE_MEMORY = 6 << 30

FLOORS = {"walk": [], "cache": ["--mode", "cache"], "p2p": ["--p2p"], "cache-p2p": ["--mode", "cache", "--p2p"]}
SHOWING = {f"{name} showing": [*flags, "--showing"] for name, flags in FLOORS.items()}
OURS = {"all": ["--max-depth", "50", "--all"], "default": []}


def work(name):
    return os.path.join(WORK, name)


def generate(script, *arguments):
    subprocess.run([PYTHON, os.path.join(FIXTURES, script), *arguments], check=True)
    return arguments


def chromium(nodes):
    page = work(f"page-{nodes}.html")
    generate("page.py", str(nodes), page)
    return ["chromium", "--no-sandbox", "--force-renderer-accessibility", "--no-first-run", "--no-default-browser-check",
            "--disable-background-networking", "--disable-sync", "--disable-component-update", "--disable-extensions",
            "--disable-gpu", "--proxy-server=127.0.0.1:9", "--password-store=basic",
            f"--user-data-dir={work(f'chromium-{nodes}')}", f"file://{page}"]


def firefox(nodes):
    page, profile = work(f"page-{nodes}.html"), work(f"firefox-{nodes}")
    generate("page.py", str(nodes), page)
    os.makedirs(profile, exist_ok=True)
    with open(os.path.join(FIXTURES, "firefox.js"), encoding="utf-8") as source, \
            open(os.path.join(profile, "user.js"), "w", encoding="utf-8") as target:
        target.write(source.read())
    return ["firefox-esr", "--no-remote", "--profile", profile, f"file://{page}"]


def office(kind, document):
    return ["prlimit", f"--as={OFFICE_MEMORY}", "--", "soffice", "--norestore", "--nologo", "--nolockcheck",
            "--nofirststartwizard", f"-env:UserInstallation=file://{work(f'office-{kind}')}", f"--{kind}", document]


def writer():
    path = work("twenty.fodt")
    generate("documents.py", "text", path, "20")
    return office("writer", path)


def calc():
    path = work("empty.fods")
    generate("documents.py", "sheet", path)
    return office("calc", path)


def gedit():
    path = work("note.txt")
    with open(path, "w", encoding="utf-8") as note:
        note.write("First line\nSecond line\n" * 20)
    return ["gedit", "--standalone", path]


def qt6():
    return [os.environ["BENCH_QT_PYTHON"], os.path.join(FIXTURES, "qt6.py"), "--page", "lists", "--log", work("qt6.log")]


# name -> (name on the bus, command)
APPS = {
    "gtk3-widget-factory": ("gtk3-widget-factory", lambda: ["gtk3-widget-factory"]),
    "gedit": ("gedit", gedit),
    "gtk4-widget-factory": ("gtk4-widget-factory", lambda: ["gtk4-widget-factory"]),
    "gnome-calculator": ("gnome-calculator", lambda: ["gnome-calculator"]),
    "kcalc": ("kcalc", lambda: ["kcalc"]),
    "qt6-fixture": ("fixture-qt6", qt6),
    "chromium-1500": ("Chromium", lambda: chromium(1500)),
    "chromium-10000": ("Chromium", lambda: chromium(10000)),
    "firefox-1500": ("Firefox", lambda: firefox(1500)),
    "firefox-10000": ("Firefox", lambda: firefox(10000)),
    "writer-20-pages": ("soffice", writer),
    "calc-empty": ("soffice", calc),
}


class Application:
    """One application in a process group of its own; only that group is ended."""

    def __init__(self, name):
        self.bus_name, command = APPS[name]
        self.command = command()
        self.process = None

    def start(self):
        environment = {**os.environ, "GSK_RENDERER": "cairo", "GNOME_ACCESSIBILITY": "1", "SAL_USE_VCLPLUGIN": "gtk3"}
        # A Qt 5 application now and then connects to the bus and never registers: another start does.
        for _ in range(8):
            self.process = subprocess.Popen(self.command, env=environment, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0)
            waited = 4 if "kcalc" in self.command else 40
            found = subprocess.run([PYTHON, os.path.join(FIXTURES, "look.py"), "wait", self.bus_name, "--group",
                                    str(self.process.pid), "--timeout", str(waited)], check=False).returncode == 0
            if found:
                return True
            self.stop()
        return False

    def settle(self):
        """Waits until three probes, a second apart, count the same nodes; gives the count."""
        last, same, end = -1, 0, time.monotonic() + 90
        while same < 2 and time.monotonic() < end:
            nodes = floor(self.bus_name, [])["nodes"]
            same = same + 1 if nodes == last and (nodes or 0) > 1 else 0
            last = nodes
            time.sleep(1)
        return last

    def stop(self):
        for number, patience in ((signal.SIGTERM, 2), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                return
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        time.sleep(0.3)


def measure(command):
    """One run: wall time and so on, standard output, standard error."""
    out, err = work("out"), work("err")
    done = subprocess.run([os.path.join(OUT, "meas"), str(LIMIT), out, err, *command], capture_output=True, text=True,
                          env={**os.environ, "AGENT_DESKTOP_STATS": "1", "AGENT_DESKTOP_HOME": work("state")}, check=False)
    result = json.loads(done.stdout)
    with open(out, encoding="utf-8", errors="replace") as file:
        result["out"] = file.read()
    with open(err, encoding="utf-8", errors="replace") as file:
        result["err"] = file.read()
    return result


def number(text, key):
    found = re.search(rf"\b{key}=(\d+)", text)
    return int(found[1]) if found else None


def finish(result, keep_output=False):
    line = next((l for l in result["err"].splitlines() if "calls=" in l), "")
    result["nodes"], result["calls"], result["waits"] = (number(line, k) for k in ("nodes", "calls", "waits"))
    result["bytes"] = len(result["out"].encode())
    result["note"] = "" if result["rc"] == 0 else (result["err"] or result["out"])[-200:]
    if not keep_output:
        del result["out"]
    del result["err"]
    return result


def floor(app, flags):
    return finish(measure([os.path.join(OUT, "floor"), "--app", app, *flags]))


def count_nodes(tree):
    left, count = [tree], 0
    while left:
        node = left.pop()
        count += 1
        left.extend(node.get("children", ()))
    return count


def ours(app, flags):
    result = finish(measure([BINARY, "snapshot", "--app", app, *flags]), keep_output=True)
    try:
        envelope = json.loads(result["out"])
        data = envelope.get("data") or {}
        result["shown"] = count_nodes(data["tree"]) if "tree" in data else None
        result["complete"] = data.get("complete")
        if not envelope.get("ok"):
            result["note"] = json.dumps(envelope.get("error"))[:200]
    except ValueError:
        result["shown"] = None
    del result["out"]
    return result


def median(results, key):
    values = [r[key] for r in results if r.get(key) is not None]
    return statistics.median(values) if values else None


def good(results):
    return results and all(r["rc"] == 0 and not r["timeout"] for r in results)


def best(readers, names):
    """(name, ms, nodes) of the fastest of these floors."""
    fit = [(median(readers[n], "wall_ms"), n) for n in names if good(readers[n])]
    if not fit:
        return None
    ms, name = min(fit)
    return name, ms, int(median(readers[name], "nodes") or 0)


def bench(name, runs):
    app = Application(name)
    if not app.start():
        return {"app": name, "missing": "it never appeared on the accessibility bus"}
    try:
        nodes = app.settle()
        readers = {key: [] for key in (*FLOORS, *SHOWING, *OURS)}
        for _ in range(runs):
            for key, results in readers.items():
                if results and results[-1]["rc"] != 0:
                    continue  # not offered by this toolkit, or failed: once is enough
                if key in OURS:
                    results.append(ours(app.bus_name, OURS[key]))
                else:
                    results.append(floor(app.bus_name, {**FLOORS, **SHOWING}[key]))
        return {"app": name, "nodes": nodes, "readers": readers}
    finally:
        app.stop()


def shown(value, form="{:,.0f}"):
    return "–" if value is None else form.format(value)


def row(result):
    if "missing" in result:
        return f"| {result['app']} | {result['missing']} |"
    readers, cells = result["readers"], [result["app"]]
    all_floor, few_floor = best(readers, FLOORS), best(readers, SHOWING)
    for key, least in (("all", all_floor), ("default", few_floor)):
        runs = readers[key]
        ms, nodes = median(runs, "wall_ms"), median(runs, "shown")
        # A toolkit that does not say what is showing (GTK 4) has no floor for that: the full one counts.
        if least and nodes and least[2] * 2 < nodes:
            least = all_floor
        cells.append(f"{shown(least and least[1])} ({least[0]}, {least[2]:,})" if least else "–")
        if not good(runs):
            cells += [f"failed: {runs[-1]['note'][:60]}".replace("|", "/") if runs else "–", "", "", ""]
            continue
        ratio = ms / least[1] if least else None
        cells += [shown(ms), shown(nodes), shown(median(runs, "calls")), shown(ratio, "{:.1f}×")]
        if median(runs, "complete") == 0:
            cells[-1] += " (incomplete)"
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--apps", default=",".join(APPS))
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    print(f"Cold `snapshot`, median of {args.runs}; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start.\n")
    print("*all*: every node, hidden ones too (`--max-depth 50 --all`), against the best floor that reads every node. *default*:"
          " as an agent asks, against the best floor that skips what is not showing. In brackets: which floor, its nodes.\n")
    print("| application | floor ms | all ms | nodes | calls | × floor | floor ms | default ms | nodes | calls | × floor |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    failed = False
    with open(os.path.join(OUT, f"{stamp}.jsonl"), "w", encoding="utf-8") as raw:
        for name in args.apps.split(","):
            result = bench(name, args.runs)
            raw.write(json.dumps(result) + "\n")
            raw.flush()
            print(row(result), flush=True)
            failed |= "missing" in result or not all(good(result["readers"][key]) for key in OURS)
    print(f"\nRaw numbers: target/bench/{stamp}.jsonl")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
