package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
)

// egressClient is a Go program of the tests of the way out: what a run of theirs executes. It imports nothing
// of airlock that it would use.
func egressClient() {
	if err := egressClientMain(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "egress-client:", err)
		os.Exit(1)
	}
}

func egressClientMain(args []string) error {
	switch args[0] {
	case "get":
		return egressGet(args[1], args[2:])
	}
	return fmt.Errorf("no command %q", args[0])
}

// egressGet prints what is at each address, or that there is nothing.
func egressGet(authority string, addresses []string) error {
	text, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}}
	for _, address := range addresses {
		response, err := client.Get(address)
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		_, err = io.Copy(os.Stdout, response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
