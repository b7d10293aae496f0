package envs

import "testing"

// spellings are commands that install, beside those of docs/installers.md.
var spellings = []string{
	"pip3.11 install six", "pip install -e .", "pip --proxy http://x install six", "/usr/local/bin/pip3 install 'six>=1'", "pip wheel six",
	"python3 -X dev -m pip install six", "python3 -m ensurepip --upgrade", "python3 -m pip.__main__ install six",
	"python3 /usr/lib/python3/dist-packages/pip/__main__.py install six", "env -i PATH=/bin pip install six", "nice -n 10 pip install six",
	"timeout -k 5 60 pip install six", "time pip install six", "echo six | xargs -n1 pip install", "printf 'pip install six\\n' | bash -s", "'pip' 'install' six",
	"`command -v pip` install six", "C='pip install six'; $C", `P=pip I=install; "$P" "$I" six`, `f() { pip "$@"; }; f install six`, "true || pip install six",
	"if true; then pip install six; fi", "(pip install six)", "{ pip install six; }", "cat <(pip install six)", "pip install six | tail -1", "apt-get update",
	"sudo apt-get -y install x", "npm i", "npm ci", "yarn add x", "pnpm add x", "mamba create -n x numpy", "conda env create -f x.yml", "uv tool install x",
	"pipenv install", "dnf install x", "apk add x", "pacman -Sy x", "dpkg -i x.deb", "brew install x", "R CMD INSTALL x.tar.gz",
	`echo 'BiocManager::install("x")' | R --no-save`,
}

// harmless are commands that only look like it, beside those of docs/installers.md. What does not parse is the
// shell's to say.
var harmless = []string{
	"pip freeze", "pip check", "pip --version", "python3 -m pip show install", "npm run build", "npm test", "conda info", "apt-cache search x", "dpkg -l", "yarn run x",
	"uv --version", "# pip install six", "man pip", "which pip", "command -v pip", "cd pip && ls install", "./pip-install.sh", "ls pip install",
	"sed -i 's/pip install/uv add/' x", "Rscript x.R", "pytest -k install", "test -x pip && echo install", "git log --grep='pip install'", "tar xf pip.tar install",
	"if [ then", "pip 'install",
}

func TestInstallersInShell(t *testing.T) {
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
