package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// asFixture is the variable that makes the test binary the server that the public conformance suite wants to
// meet, with its tools, resources and prompts, over the same loop as ever: testdata/clients/conformance.
const asFixture = "AIRLOCK_CONFORMANCE_FIXTURE"

func TestMain(m *testing.M) {
	if os.Getenv(asFixture) != "" {
		s := New(testOptions(newFakeRunner()))
		addFixture(s)
		if err := Serve(context.Background(), os.Stdin, os.Stdout, s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A pixel, and a sound of no length, in base64.
const (
	fixtureImage = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
	fixtureSound = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
)

func addFixture(s *Server) {
	text := func(uri, mime, text string) mcp.TextResourceContents {
		return mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: text}
	}
	for name, content := range map[string][]mcp.Content{
		"test_simple_text":       {mcp.NewTextContent("This is a simple text response for testing.")},
		"test_image_content":     {mcp.NewImageContent(fixtureImage, "image/png")},
		"test_audio_content":     {mcp.NewAudioContent(fixtureSound, "audio/wav")},
		"test_embedded_resource": {mcp.NewEmbeddedResource(text("test://embedded-resource", "text/plain", "This is an embedded resource content."))},
		"test_multiple_content_types": {
			mcp.NewTextContent("Multiple content types test:"), mcp.NewImageContent(fixtureImage, "image/png"),
			mcp.NewEmbeddedResource(text("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)),
		},
	} {
		s.mcp.AddTool(mcp.NewTool(name, mcp.WithDescription(name)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: content}, nil
		})
	}
	s.mcp.AddTool(mcp.NewTool("test_error_handling", mcp.WithDescription("fails")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
	})
	s.notices.setLevel(mcp.LoggingLevelInfo) // the suite's client asks for no level, and wants messages
	s.mcp.AddTool(mcp.NewTool("test_tool_with_logging", mcp.WithDescription("tells what it does")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			s.Notice(line)
		}
		return mcp.NewToolResultText("done"), nil
	})
	s.mcp.AddTool(mcp.NewTool("test_tool_with_progress", mcp.WithDescription("tells of its progress")), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := ctx.Value(callKey{}).(call)
		p := startProgress(c.token, 0, c.notify)
		if tell := p.take(); tell != nil {
			for _, line := range []string{"0", "50", "100"} {
				tell(line)
			}
		}
		p.stop()
		return mcp.NewToolResultText("done"), nil
	})
	s.mcp.AddTool(mcp.NewToolWithRawSchema("json_schema_2020_12_tool", "has a schema of its own", json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`)),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("done"), nil
		})
	addFixtureQuestions(s)
	addFixtureResources(s)
	addFixturePrompts(s)
}

// addFixtureQuestions adds the tools that ask the client's user something.
func addFixtureQuestions(s *Server) {
	for name, schema := range map[string]string{
		"test_elicitation": `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`,
		"test_elicitation_sep1034_defaults": `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`,
		"test_elicitation_sep1330_enums": `{"type":"object","properties":{
			"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
			"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
			"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`,
	} {
		s.mcp.AddTool(mcp.NewTool(name, mcp.WithDescription(name)), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, err := s.mcp.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{
				Message: req.GetString("message", "What is to be done?"), RequestedSchema: json.RawMessage(schema),
			}})
			if err != nil {
				return nil, err
			}
			return mcp.NewToolResultText(fmt.Sprintf("User response: action=%s, content=%v", answer.Action, answer.Content)), nil
		})
	}
}

func addFixtureResources(s *Server) {
	server.WithResourceCapabilities(true, false)(s.mcp)
	add := func(uri string, contents mcp.ResourceContents) {
		s.mcp.AddResource(mcp.NewResource(uri, uri), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{contents}, nil
		})
	}
	add("test://static-text", mcp.TextResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."})
	add("test://static-binary", mcp.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: fixtureImage})
	add("test://watched-resource", mcp.TextResourceContents{URI: "test://watched-resource", MIMEType: "text/plain", Text: "watched"})
	s.mcp.AddResourceTemplate(mcp.NewResourceTemplate("test://template/{id}/data", "template"), func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{
			URI: req.Params.URI, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":"123","templateTest":true,"data":"Data for ID: 123 of %s"}`, req.Params.URI),
		}}, nil
	})
}

// noCompletion completes nothing, as the suite allows.
type noCompletion struct{}

func (noCompletion) CompletePromptArgument(context.Context, string, mcp.CompleteArgument, mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{}}, nil
}

func addFixturePrompts(s *Server) {
	server.WithCompletions()(s.mcp)
	server.WithPromptCompletionProvider(noCompletion{})(s.mcp)
	add := func(p mcp.Prompt, messages func(args map[string]string) []mcp.PromptMessage) {
		s.mcp.AddPrompt(p, func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: messages(req.Params.Arguments)}, nil
		})
	}
	user := func(contents ...mcp.Content) (all []mcp.PromptMessage) {
		for _, c := range contents {
			all = append(all, mcp.NewPromptMessage(mcp.RoleUser, c))
		}
		return all
	}
	describe := mcp.WithPromptDescription("a prompt of the fixture")
	add(mcp.NewPrompt("test_simple_prompt", describe), func(map[string]string) []mcp.PromptMessage {
		return user(mcp.NewTextContent("This is a simple prompt for testing."))
	})
	add(mcp.NewPrompt("test_prompt_with_arguments", describe, mcp.WithArgument("arg1", mcp.RequiredArgument()), mcp.WithArgument("arg2", mcp.RequiredArgument())), func(args map[string]string) []mcp.PromptMessage {
		return user(mcp.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])))
	})
	add(mcp.NewPrompt("test_prompt_with_embedded_resource", describe, mcp.WithArgument("resourceUri", mcp.RequiredArgument())), func(args map[string]string) []mcp.PromptMessage {
		return user(mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: args["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}), mcp.NewTextContent("Please process the embedded resource above."))
	})
	add(mcp.NewPrompt("test_prompt_with_image", describe), func(map[string]string) []mcp.PromptMessage {
		return user(mcp.NewImageContent(fixtureImage, "image/png"), mcp.NewTextContent("Please analyze the image above."))
	})
}
