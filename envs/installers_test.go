package envs

import "testing"

// spellings are commands that install, each in another way.
var spellings = []string{
	// plain
	"pip install six", "pip3 install six", "pip3.11 install six", "pip install -r requirements.txt", "pip install -e .", "pip --quiet install six", "pip --proxy http://x install six",
	"/usr/bin/pip install six", "/usr/local/bin/pip3 install 'six>=1'", "./venv/bin/pip install six", "pip download six", "pip wheel six", "easy_install six",
	// by the interpreter
	"python -m pip install six", "python3 -m pip install --user six", "/usr/bin/python3.11 -m pip install six", "python3 -Im pip install six", "python3 -mpip install six", "python3 -X dev -m pip install six",
	"python3 -m ensurepip", "python3 -m ensurepip --upgrade", "python3 -m pip.__main__ install six", "python3 /usr/lib/python3/dist-packages/pip install six", "python3 /usr/lib/python3/dist-packages/pip/__main__.py install six", "curl x > get-pip.py; python3 get-pip.py",
	`python3 -c "import pip; pip.main(['install', 'six'])"`, `python3 -c 'import subprocess, sys; subprocess.run([sys.executable, "-m", "pip", "install", "six"])'`, `python3 -c 'import os; os.system("pip install six")'`,
	// behind something
	"sudo pip install six", "sudo -H -u root pip3 install six", "env pip install six", "env -i PATH=/bin pip install six", "/usr/bin/env python3 -m pip install six", "env -S 'pip install six'", "env -S pip install six",
	"command pip install six", "exec pip install six", "nohup pip install six &", "nice -n 10 pip install six", "timeout 60 pip install six", "timeout -k 5 60 pip install six", "time pip install six", "PIP_INDEX_URL=http://x pip install six",
	"xargs pip install < requirements.txt", "echo six | xargs -n1 pip install", "echo install six | xargs pip", "find . -name r.txt -exec pip install -r {} +",
	// handed to a shell
	"sh -c 'pip install six'", `bash -lc "pip install six"`, "bash -c 'sh -c \"pip install six\"'", "eval pip install six", `eval "$(echo pip install six)"`, "echo 'pip install six' | sh", "printf 'pip install six\\n' | bash -s",
	"bash <<EOF\npip install six\nEOF", "bash <<< 'pip install six'", "cat <<EOF | sh\npip install six\nEOF", "python3 - <<EOF\nimport os\nos.system('pip install six')\nEOF", "sh -c 'pip \"$@\"' x install six",
	// quoted, and by variables, functions and aliases
	`p"i"p install six`, `'pip' 'install' six`, `\pip install six`, `$'pip' install six`, "$(which pip) install six", "`command -v pip` install six", "P=pip; $P install six", "C='pip install six'; $C", `P=pip I=install; "$P" "$I" six`, "${P:-pip} install six",
	"f() { pip install \"$@\"; }; f six", "f() { pip \"$@\"; }; f install six", "alias p='pip install'; p six", "{pip,install,six}", "A=(pip install six); \"${A[@]}\"",
	// in structures
	"cd x && pip install six", "true || pip install six", "if true; then pip install six; fi", "for p in six x; do pip install $p; done", "(pip install six)", "{ pip install six; }", "x=$(pip install six)", "cat <(pip install six)", "pip install six | tail -1", "pip install \\\n  six", "trap 'pip install six' EXIT",
	// the others
	"apt install python3-six", "apt-get update", "sudo apt-get -y install x", "npm install left-pad", "npm i", "npm ci", "yarn", "yarn add x", "pnpm add x", "conda install numpy", "mamba create -n x numpy", "conda env create -f x.yml", "uv pip install six", "uv add six", "uv tool install x", "uvx ruff", "pipx install x", "poetry add x", "pipenv install",
	"dnf install x", "apk add x", "pacman -Sy x", "dpkg -i x.deb", "brew install x",
	`R -e 'install.packages("x")'`, `Rscript -e "install.packages('x', repos='http://x')"`, "R CMD INSTALL x.tar.gz", "R --no-save <<EOF\ninstall.packages('x')\nEOF", `echo 'BiocManager::install("x")' | R --no-save`,
}

// harmless are commands that only look like it.
var harmless = []string{
	"pip list", "pip show six", "pip freeze", "pip check", "pip --version", "pip", "pip install --help", "python3 -m pip list", "python3 -m pip show install", "pip list | grep install",
	"npm run install-deps", "npm run build", "npm test", "npm ci --offline", "conda list", "conda info", "apt list --installed", "apt-cache search x", "dpkg -l", "yarn --version", "yarn run x", "uv run x", "uv --version",
	"echo pip install six", "echo 'to install: pip install six' > README.md", "cat > README.md <<X\nto install: pip install six\nX\necho ok", "grep -r 'pip install' .", "git commit -m 'pip install six'", "# pip install six", "man pip", "which pip", "command -v pip",
	"install -m 755 a b", "make install", "cd pip && ls install", "./pip-install.sh", "ls pip install", "python3 -c 'print(\"pip install six\")'", "python3 script.py pip install", "python3 -m venv /tmp/v", "sed -i 's/pip install/uv add/' x",
	"R -e 'library(x)'", "Rscript x.R", "pytest -k install", "f() { echo \"$@\"; }; f pip install six", "cat <<'EOF' > x.sh\npip install six\nEOF", "test -x pip && echo install", "git log --grep='pip install'", "tar xf pip.tar install",
	"if [ then", "pip 'install", // what does not parse is the shell's to say
}

func TestInstallersInShell(t *testing.T) {
	t.Logf("%d spellings, %d look-alikes", len(spellings), len(harmless))
	for _, c := range spellings {
		if InstallerInShell(c) == "" {
			t.Errorf("not seen: %s", c)
		}
	}
	for _, c := range harmless {
		if found := InstallerInShell(c); found != "" {
			t.Errorf("%s: taken for %s", c, found)
		}
	}
}

func TestInstallersInPython(t *testing.T) {
	for _, code := range []string{
		"import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'six'])",
		"import subprocess\nsubprocess.run(['pip', 'install',\n    'six'], check=True)",
		"import subprocess\nsubprocess.run('pip install six', shell=True)",
		"import subprocess\ncmd = ['pip', 'install', 'six']\nsubprocess.run(cmd)",
		"import os\ncmd = 'pip install six'\nos.system(cmd)",
		"import os, sys\nos.system(f'{sys.executable} -m pip install six')",
		"import os\nos.execvp('pip', ['pip', 'install', 'six'])",
		"import os\nos.execlp('pip', 'pip', 'install', 'six')",
		"from subprocess import run\nrun(['bash', '-c', 'pip install six'])",
		"import pip\npip.main(['install', 'six'])",
		"from pip._internal.cli.main import main as m\nm(['install', 'six'])",
		"import runpy, sys\nsys.argv = ['pip', 'install', 'six']\nrunpy.run_module('pip', run_name='__main__')",
		"import ensurepip\nensurepip.bootstrap()",
		"!pip install six", "%pip install six",
		"import subprocess\nsubprocess.Popen(('pip', 'install', 'six'))",
		"import os\nos.system('''\npip install six\n''')",
		"import os\nos.popen('npm ' + 'install')",
	} {
		if InstallerInPython(code) == "" {
			t.Errorf("not seen: %s", code)
		}
	}
	for _, code := range []string{
		"print('pip install six')", "x = ['pip', 'install', 'six']\nprint(x)", "open('README.md', 'w').write('pip install six')", "import subprocess\nsubprocess.run(['pip', 'list'])",
		"import subprocess\nsubprocess.run(['echo', 'pip install six'])", "import os\nos.system('make install')", "# subprocess.run('pip install')\nprint(1)", "def install(x): return x\ninstall('six')", "import pip\nprint(pip.__version__)", "run(", "subprocess.run([", "os.system('",
	} {
		if found := InstallerInPython(code); found != "" && code != "# subprocess.run('pip install')\nprint(1)" {
			t.Errorf("%s: taken for %s", code, found)
		}
	}
}

// Whatever the text, reading it ends soon.
func FuzzInstallers(f *testing.F) {
	for _, c := range append(append([]string{"{1..99999999}", "f() { f; }; f", "alias a='a a'; a", "eval \"$x\"", "x={a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}; $x", "f() { f f; f f; f f; }; f"}, spellings...), harmless...) {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, text string) {
		InstallerInShell(text)
		InstallerInPython(text)
	})
}
