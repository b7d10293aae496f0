package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
)

// confirm asks for a yes on the terminal. Question and answer go to the terminal itself: neither can be
// redirected by whoever started this process without opening one. hint is the way out where there is
// none.
func confirm(terminal func() (io.ReadWriteCloser, error), question, hint string) (bool, error) {
	tty, err := terminal()
	if err != nil {
		return false, &fault{Msg: "there is no terminal to ask on: " + cause(err).Error(), Hint: hint}
	}
	defer tty.Close()
	if _, err := io.WriteString(tty, question); err != nil {
		return false, err
	}
	answer, err := bufio.NewReader(io.LimitReader(tty, 1024)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "yes" || answer == "y", nil
}

// openTerminal opens the terminal that controls the process. Whoever is asked there may leave by an interrupt: nothing was begun
// that would have to be ended first.
func openTerminal() (io.ReadWriteCloser, error) {
	signal.Reset()
	return os.OpenFile("/dev/tty", os.O_RDWR, 0)
}
