package main

import (
	"io"
	"os"

	"github.com/charmbracelet/log"
)

// newLogger makes the log: on standard error, and in a file if one is named. Standard output is the
// protocol's. close must be called at the end.
func newLogger(stderr io.Writer, file, level string) (logger *log.Logger, closeLog func(), err error) {
	if level == "" {
		level = "info"
	}
	parsed, err := log.ParseLevel(level)
	if err != nil || level == "fatal" {
		return nil, nil, &fault{Where: "--log-level", Msg: tomlText(level) + " is not one of debug, info, warn, error"}
	}
	// The library asks a terminal for its colours, with escapes that it prints and answers that it waits for
	// on standard input, where the protocol is. What isn't a file is not asked.
	w, closeLog := io.Writer(struct{ io.Writer }{stderr}), func() {}
	if file != "" {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, &fault{Where: "--log-file", Key: tomlText(file), Msg: cause(err).Error()}
		}
		w, closeLog = io.MultiWriter(stderr, f), func() { _ = f.Close() }
	}
	return log.NewWithOptions(w, log.Options{Level: parsed, ReportTimestamp: true, Prefix: "airlock"}), closeLog, nil
}
