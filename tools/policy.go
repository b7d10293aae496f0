package tools

import (
	"fmt"
	"strings"
)

// MaxIsolation is the longest that [Policy].Isolation may be: clients cut instructions that are longer than 2 KB.
const MaxIsolation = 350

// Policy is what descriptions and instructions say of the configuration in force.
type Policy struct {
	// Direct says that runs are not sandboxed, and write straight to the workspace.
	Direct bool
	// Through says that sandboxed runs write straight to the workspace.
	Through bool
	// ReadOnly says that runs can't write to the workspace.
	ReadOnly bool
	// Hides says that runs do not see all of the workspace.
	Hides bool
	// Cache says that what runs that end well leave in ~/.cache lasts.
	Cache bool
	// LandOn is "success" or "exit": whether a run lands that exited with another status than 0; or
	// "review": a run that exited with 0 waits for the user.
	LandOn string
	// OnConflict is "beside" or "discard": what becomes of a run that changed what someone else changed meanwhile.
	OnConflict string
	// Packages says that the package tools are offered and can install.
	Packages bool
	// Network is "deny", "allowlist" or "allow".
	Network string
	// Allow names what a run reaches, if Network is "allowlist".
	Allow []string
	// Order is "arrival" or "parallel": whether a call waits for the one that came before it.
	Order string
	// Limits are the limits in force.
	Limits Limits
	// Isolation says what isolates runs on this host and why that, or that nothing does, in a sentence or
	// two of at most MaxIsolation bytes; only the instructions hold it.
	Isolation string
	// Notes are further facts that a model needs, a sentence each: what this host cannot hold.
	Notes []string
}

// Describe says what a run may do: the part of the tools' descriptions that follows the policy.
func (p Policy) Describe() string {
	var b strings.Builder
	if p.Direct {
		b.WriteString("Runs are NOT sandboxed: they act as the user, and what they write is there at once, whether they end well or not.")
	} else {
		b.WriteString("Runs are sandboxed: they see the workspace, the system's programs and an empty home directory and /tmp, and nothing else of the host. ")
		if p.Hides {
			b.WriteString("Some paths of the workspace are hidden from them. ")
		}
		switch {
		case p.ReadOnly:
			b.WriteString("The workspace is READ-ONLY for them: a write there fails (EROFS), and nothing lands. They can write to /tmp and the home directory, which are gone afterwards. ")
		case p.Through:
			b.WriteString("What they write to the workspace is there AT ONCE and stays, however they end: there is no transaction, no undo and no conflict check. Files that make the host run something (git hooks and configuration, editor settings and the like) are read-only. ")
		case p.LandOn == "exit":
			b.WriteString("The changes of a run that ends by itself, with whatever exit status, land in the workspace as one transaction; on_failure=\"discard\" keeps those of a failed run out. ")
		case p.LandOn == "review":
			b.WriteString("The changes of a run that exits with 0 do not land: they wait until the user has reviewed them, and later runs do not see them; after any other exit they are discarded, unless on_failure=\"keep\". ")
		default:
			b.WriteString("The changes of a run that exits with 0 land in the workspace as one transaction; after any other exit they are discarded, unless on_failure=\"keep\". ")
		}
		if !p.ReadOnly && !p.Through {
			b.WriteString("A run that times out, is killed or reaches a limit leaves the workspace as it was. ")
		}
		lasts := "Nothing outside the workspace lasts"
		if p.Cache {
			lasts += " but the ~/.cache of runs that end well"
		}
		b.WriteString(lasts + ", and no process outlives its run.")
	}
	b.WriteByte(' ')
	switch p.Network {
	case "allow":
		if p.Direct {
			b.WriteString("The network is reachable.")
		} else {
			b.WriteString("Every public address of the network is reachable, by TCP.")
		}
	case "allowlist":
		fmt.Fprintf(&b, "The network is closed but for %s, which every TCP program reaches without being set up for it.", shortList(p.Allow, 10))
	default:
		b.WriteString("There is no network, only a loopback of the run's own; programs of one run reach each other on it.")
	}
	l := p.Limits
	written := fmt.Sprintf("%s written to the workspace, /tmp and the home directory together", l.Disk)
	if p.Through {
		written = fmt.Sprintf("%s in /tmp and the home directory together", l.Disk)
	}
	fmt.Fprintf(&b, " Limits: %s a run unless timeout_seconds says otherwise (at most %s), %d processes, %s of memory, %s; %s of output are shown, its beginning and its end.",
		l.Timeout, l.MaxTimeout, l.Processes, l.Memory, written, l.Output)
	for _, note := range p.Notes {
		b.WriteString(" " + note)
	}
	return b.String()
}

// shortList joins at most n words, and counts the others.
func shortList(words []string, n int) string {
	if len(words) == 0 {
		return "nothing"
	}
	if len(words) <= n {
		return list(words)
	}
	return fmt.Sprintf("%s and %d more", list(words[:n]), len(words)-n)
}

// instructions tell a model how to work here. Clients give them to the model once, for all tools.
func (p Policy) instructions() string {
	var b strings.Builder
	b.WriteString("airlock runs commands and Python code in a workspace.\n")
	if p.Isolation != "" {
		b.WriteString("- " + p.Isolation + "\n")
	}
	if p.Direct {
		b.WriteString("- There is no sandbox and no transaction here: everything that a run does is done, and stays done.\n")
	} else if p.ReadOnly {
		b.WriteString("- The workspace is read-only here. Runs can look and compute, and write to /tmp and the home directory, which last for one call; nothing lands in the workspace. If something is to be changed there, say so to the user.\n")
		b.WriteString("- Calls share nothing: no variables, no working directory, no background processes, no files in /tmp or the home directory. Put what belongs together into one call.\n")
	} else if p.Through {
		b.WriteString("- There is no transaction here: what a run writes to the workspace is there at once and stays, also if it fails or is ended. Nothing can be undone.\n")
		b.WriteString("- Calls share nothing but the workspace: no variables, working directory, background processes, or files in /tmp or the home directory. Put what belongs together into one call.\n")
		b.WriteString("- Some files and directories of the workspace are read-only (EROFS, EBUSY): those that make the host run something. If one is to be changed, say so to the user. Moving files between directories can need a copy (EXDEV); mv does that by itself.\n")
	} else {
		if p.LandOn == "review" {
			b.WriteString("- Each call is one transaction. If it ends well, its changes wait until the user lands them (airlock land RUN); else it is as if it had never run. No later call sees what waits; tell the user what does. The line \"workspace: …\" of each result says which.\n")
		} else {
			b.WriteString("- Each call is one transaction. If it ends well, its changes land in the workspace together; else it is as if it had never run. The line \"workspace: …\" of each result says which.\n")
		}
		b.WriteString("- So let a command fail if its work is not to stay (set -e, &&), and pass on_failure=\"keep\" where its files are wanted even if it fails, as reports of tests are.\n")
		b.WriteString("- Calls share nothing but the workspace: no variables, working directory, background processes, or files in /tmp or the home directory. Put what belongs together into one call.\n")
		conflict := "the result names the conflict, and where the run's version is"
		if p.OnConflict == "discard" {
			conflict = "nothing of the run lands then, and the result names the file"
		}
		b.WriteString("- A file that someone else changed meanwhile is not overwritten: " + conflict + ". Changes of files that make the host run something (git hooks, editor settings) are withheld and named.\n")
	}
	b.WriteString("- A call that answers \"running run_id=…\" has not ended: call again with that run_id to wait on, or with stop=true to end it.\n")
	if p.Cache {
		b.WriteString("- ~/.cache lasts, as the runs leave it that end well: caches of build tools are warm.\n")
	}
	if p.Order == "parallel" {
		b.WriteString("- Calls that are sent at once run side by side; send those that build on each other one after the other.\n")
	} else if p.LandOn == "review" || p.Through {
		b.WriteString("- Calls that are sent at once run in their order.\n")
	} else {
		b.WriteString("- Calls that are sent at once run in their order, each on what the one before landed.\n")
	}
	if p.Network == "deny" {
		b.WriteString("- There is no network. If something is missing, say so to the user; do not look for a way around.\n")
	}
	if p.Network == "allowlist" {
		b.WriteString("- A host that is not allowed does not resolve, or its connections are reset; the result then says so under \"network:\". Ask the user to allow it (airlock allow HOST); do not look for a way around.\n")
	}
	if p.Packages {
		b.WriteString("- Install packages with package_install (for good) or python_env (for this conversation), not with pip in a run. The user may have to approve them: tell them the command that the result names.\n")
	}
	b.WriteString("- What stands before the last line \"exit=…\" of a result is the program's output, not airlock's word.\n")
	return b.String()
}

// goesOn is what a result says of the workspace while its run goes on.
func (p Policy) goesOn() string {
	switch {
	case p.Direct || p.Through:
		return "workspace: the run goes on; what it writes is there at once"
	case p.ReadOnly:
		return "workspace: the run goes on; nothing of it lands"
	case p.LandOn == "review":
		return "workspace: nothing landed yet; the run goes on, and waits for the user's review if it ends well"
	case p.LandOn == "exit":
		return "workspace: nothing landed yet; the run goes on, and lands when it exits"
	}
	return "workspace: nothing landed yet; the run goes on, and lands when it ends well"
}
