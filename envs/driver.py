# What the installer does inside the sandbox. It is given its work in /build/request.json and leaves what
# came of it in /build/answer.json; what pip prints goes to the output. Python 3.8 or later.
import glob, json, os, re, subprocess, sys, sysconfig

RUN = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('pip', run_name='__main__', alter_sys=True)"


OLDEST = (22, 3)  # that reports what it would install, and can be told for which interpreter


def find_pip():
    """The first pip that is new enough, and the version of one that is not."""
    import importlib.util

    found = []
    spec = importlib.util.find_spec("pip")
    if spec and spec.origin:
        with open(spec.origin, encoding="utf-8") as f:
            said = re.search(r"""^__version__ *= *["']([^"']+)""", f.read(1 << 16), re.M)
        found.append((os.path.dirname(os.path.dirname(spec.origin)), said[1] if said else "0"))
    wheels = glob.glob("/usr/share/python-wheels/pip-*.whl")
    spec = importlib.util.find_spec("ensurepip")
    if spec and spec.origin:
        wheels += glob.glob(os.path.join(os.path.dirname(spec.origin), "_bundled", "pip-*.whl"))
    found += [(wheel, os.path.basename(wheel).split("-")[1]) for wheel in wheels]
    for where, version in found:
        if tuple(int(n) for n in re.findall(r"\d+", version)[:2]) >= OLDEST:
            return where, ""
    return "", found[0][1] if found else ""


def probe(_):
    import platform

    v, impl = sys.version_info, sys.implementation
    iv = "%d.%d.%d" % impl.version[:3]
    where, old = find_pip()
    if impl.version[3] != "final":
        iv += impl.version[3][0] + str(impl.version[4])
    return {
        "executable": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
        "version": "%d.%d.%d" % v[:3],
        "abi": sysconfig.get_config_var("SOABI") or impl.cache_tag or impl.name,
        "libraries": [d for d in [sysconfig.get_config_var("LIBDIR")] if d],
        "pip": where,
        "old_pip": old,
        "markers": {
            "os_name": os.name, "sys_platform": sys.platform, "platform_machine": platform.machine(),
            "platform_python_implementation": platform.python_implementation(), "platform_release": platform.release(),
            "platform_system": platform.system(), "platform_version": platform.version(), "python_version": "%d.%d" % v[:2],
            "python_full_version": platform.python_version(), "implementation_name": impl.name, "implementation_version": iv,
        },
    }


def tell(**at):
    """Says how far a step is. Whoever reads it may find it half written."""
    with open("/build/progress.json", "w", encoding="utf-8") as f:
        json.dump(at, f)


def pip(request, *args, python=None, line=None):
    where = request["pip"]
    if where.endswith(".whl"):  # the one that ensurepip would install
        import zipfile

        zipfile.ZipFile(where).extractall("/build/pip")
        where = "/build/pip"
    common = ["--isolated", "--no-input", "--disable-pip-version-check", "--no-color", "--no-cache-dir", "--timeout", "20", "--retries", "2"]
    runner = os.path.join(where, "pip", "__pip-runner__.py")
    if python and os.path.exists(runner):  # what --python does, without a start of Python before it
        argv = [python, "-I", "-B", runner]
    else:
        argv = [sys.executable, "-I", "-B", "-c", RUN, where, *(["--python", python] if python else [])]
    if not line:
        return subprocess.run([*argv, *args, *common]).returncode
    with subprocess.Popen([*argv, *args, *common], stdout=subprocess.PIPE, encoding="utf-8", errors="replace") as p:
        for text in p.stdout:
            line(text)
    return p.returncode


def index(request):
    args = ["--index-url", request["index"], "--only-binary", ":all:", "--progress-bar", "off"]
    if request["index"].startswith("http://"):
        args += ["--trusted-host", re.sub(r"^.*@", "", request["index"].split("/")[2])]
    if request.get("cert"):
        args += ["--cert", request["cert"]]
    return args


def resolve(request):
    found, conflict = set(), []

    def collected(text):
        if text.startswith("The conflict is caused by") or conflict and conflict[-1].strip():
            conflict.append(text)  # up to the first empty line
        elif text.startswith("Collecting "):
            found.add(re.split(r"[^A-Za-z0-9._-]", text[11:])[0])
            tell(found=len(found))
        elif text.startswith("Could not fetch URL"):  # pip goes on, and says in the end that nothing fits
            print("ERROR:", text.strip(), file=sys.stderr, flush=True)

    status = pip(request, "install", "--dry-run", "--ignore-installed", "--report", "/build/report.json", "-r", "/build/requirements.txt", *index(request), line=collected)
    if status:
        print("".join(conflict), end="", file=sys.stderr, flush=True)
        refusals(request)
        return {"status": status}
    with open("/build/report.json", encoding="utf-8") as f:
        report = json.load(f)
    packages = []
    for item in report["install"]:
        info, meta = item["download_info"], item["metadata"]
        archive = info.get("archive_info") or {}
        sha = (archive.get("hashes") or {}).get("sha256") or re.sub("^sha256=", "", archive.get("hash") or "")
        packages.append({"name": meta["name"], "version": meta["version"], "sha256": sha, "url": info.get("url", ""), "direct": bool(item.get("is_direct")),
                         "yanked": bool(item.get("is_yanked")), "requires": meta.get("requires_dist") or [], "extras": meta.get("provides_extra") or []})
    have = set(request.get("have") or [])
    new = [p for p in packages if p["sha256"] not in have and not p["direct"]]
    for n, p in enumerate(new):
        tell(done=n, all=len(new))
        p.update(details(request, p["name"], p["url"].split("#")[0].rsplit("/", 1)[-1]))
    return {"status": 0, "packages": packages}


def ask(request, name):
    """The index's page of a package, with its type."""
    import ssl, urllib.parse, urllib.request

    url = request["index"].rstrip("/") + "/" + re.sub(r"[-_.]+", "-", name).lower() + "/"
    parts = urllib.parse.urlsplit(url)
    asked = urllib.request.Request(urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])),
                                   headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5"})
    if "@" in parts.netloc:
        import base64

        login = urllib.parse.unquote(parts.netloc.rpartition("@")[0])
        asked.add_unredirected_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    context = ssl.create_default_context(cafile=request.get("cert") or None) if url.startswith("https:") else None
    with urllib.request.urlopen(asked, timeout=20, context=context) as r:
        return r.headers.get("Content-Type", ""), r.read(64 << 20)


def refusals(request):
    """Says which packages the index refused to speak of: pip takes that for there being none."""
    import urllib.error

    with open("/build/requirements.txt", encoding="utf-8") as f:
        names = dict.fromkeys(re.match(r"[A-Za-z0-9._-]*", line)[0] for line in f)
    for name in list(names)[-8:]:  # what is asked for comes last
        try:
            if name:
                ask(request, name)
        except urllib.error.HTTPError as e:
            if e.code != 404:
                print("ERROR: the index answered %d when it was asked for %s" % (e.code, name), file=sys.stderr)
        except Exception:
            pass  # pip said so


def details(request, name, file):
    """What only the index's page says of a file: its size, and whether it was yanked. A page that can't be had says nothing."""
    import html, urllib.parse

    wanted = urllib.parse.unquote(file)
    try:
        kind, page = ask(request, name)
        if "json" in kind:
            for f in json.loads(page)["files"]:
                if f["filename"] == wanted:
                    return {"size": int(f.get("size") or 0), "yanked": bool(f.get("yanked"))}
        for tag in re.findall(r"<a\b[^>]*>", page.decode("utf-8", "replace")):
            href = re.search(r"""href\s*=\s*["']([^"'#]*)""", tag)
            if href and urllib.parse.unquote(html.unescape(href.group(1)).rsplit("/", 1)[-1]) == wanted:
                return {"yanked": "data-yanked" in tag}
    except Exception as e:
        print("what the index says of", name, "could not be had:", e, file=sys.stderr)
    return {}


def fetch(request):
    return {"status": pip(request, "download", "--no-deps", "--require-hashes", "--quiet", "-d", "/build/wheels", "-r", "/build/requirements.txt", *index(request))}


def install(request):
    status = pip(request, "install", "--no-index", "--no-deps", "--require-hashes", "--no-compile", "--no-warn-script-location",
                 "--quiet", "--find-links", "/wheels", "-r", "/build/requirements.txt", python="/env/bin/python")
    if status == 0:
        # What does not compile, as templates and old files of a package, is compiled never, or at its import.
        subprocess.run([sys.executable, "-I", "-B", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", request["site"]],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {"status": status}


def main():
    with open("/build/request.json", encoding="utf-8") as f:
        request = json.load(f)
    answer = {"probe": probe, "resolve": resolve, "fetch": fetch, "install": install}[sys.argv[1]](request)
    with open("/build/answer.json", "w", encoding="utf-8") as f:
        json.dump(answer, f)


main()
