// Command client lists the tools of a server and runs one with the official Go SDK's client, which shares
// no code with the library that the server is made with.
//
//	go run ./testdata/clients/go ./airlock
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tools, err := session(ctx, os.Args[1])
	if err != nil {
		fmt.Println("FAIL: go client:", err)
		os.Exit(1)
	}
	fmt.Printf("ok  \tgo client: %d tools, one run\n", tools)
}

func session(ctx context.Context, airlock string) (tools int, err error) {
	dir, err := os.MkdirTemp("", "airlock-client-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	workspace, home := filepath.Join(dir, "workspace"), filepath.Join(dir, "home")
	for _, d := range []string{workspace, home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return 0, err
		}
	}

	cmd := exec.Command(airlock, "serve", "--workspace", workspace, "--log-level", "warn")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "go-client", Version: "1"}, nil)
	s, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return 0, err
	}
	defer s.Close()

	list, err := s.ListTools(ctx, nil)
	if err != nil {
		return 0, err
	}
	names := map[string]bool{}
	for _, tool := range list.Tools {
		names[tool.Name] = true
	}
	if !names["run_shell"] || !names["run_python"] {
		return 0, fmt.Errorf("a tool is missing among %v", names)
	}

	result, err := s.CallTool(ctx, &mcp.CallToolParams{
		Name:      "run_shell",
		Arguments: map[string]any{"command": "echo from the client > made.txt; cat made.txt"},
	})
	if err != nil {
		return 0, err
	}
	shown, err := json.Marshal(result)
	if err != nil {
		return 0, err
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok || result.IsError || !strings.Contains(text.Text, "from the client\nexit=0\nworkspace: 1 added: made.txt") {
		return 0, fmt.Errorf("unexpected result: %s", shown)
	}
	if landed, err := os.ReadFile(filepath.Join(workspace, "made.txt")); err != nil || string(landed) != "from the client\n" {
		return 0, fmt.Errorf("made.txt holds %q (%v)", landed, err)
	}
	return len(list.Tools), nil
}
