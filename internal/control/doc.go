// Package control lets a person's commands reach the airlock processes that have runs going on: to list the
// runs, and to end one.
//
// Each such process listens on a socket of its own in one directory, which is the user's alone (mode 0700) and
// which no run sees. A client asks all of them. A question is one line of JSON and so is the answer:
//
//	{"list":true}          {"runs":[{"run":"7f3a…","tool":"run_shell",…}]}
//	{"stop":"7f3a…"}       {"stopped":true}, once the run has ended; {} if it is none of the process's
//
// The socket of a process that is gone refuses connections, and is removed by who notices. Who may open the
// socket may ask, so an answer holds nothing that is not the user's to know.
package control
