package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
)

// message is a JSON-RPC message as far as it must be understood here; what it asks for is mcp-go's
// to understand. Members keep the bytes that the client wrote.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// readMessage reads one message. Its error is what the client is to hear; what could be read is
// there then too.
func readMessage(raw []byte) (message, error) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		if m.ID != nil && idKey(m.ID) == "" {
			m.ID = nil
		}
		return m, errors.New("not a JSON-RPC message")
	}
	switch {
	case m.Version != "2.0":
		return m, errors.New(`not a JSON-RPC message: jsonrpc is not "2.0"`)
	case m.ID != nil && idKey(m.ID) == "":
		return message{}, errors.New("the id is not a string or a number")
	case m.Method == "" && m.Result == nil && m.Error == nil:
		return m, errors.New("not a JSON-RPC message: neither a method nor a result")
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return m, errors.New("not a JSON-RPC message: a method and a result")
	case m.Method == "" && m.ID == nil:
		return m, errors.New("not a JSON-RPC message: a result without an id")
	}
	return m, nil
}

func (m message) isAnswer() bool       { return m.Method == "" }
func (m message) isNotification() bool { return m.ID == nil }

// idKey gives a key under which all spellings of an id are found: 1 and 1.0, "a" and "\u0061". It is
// "" for what is no id. Answers carry the client's spelling, never the key.
func idKey(id json.RawMessage) string {
	id = bytes.TrimSpace(id)
	if len(id) == 0 || !json.Valid(id) {
		return ""
	}
	if id[0] == '"' {
		var s string
		if json.Unmarshal(id, &s) != nil {
			return ""
		}
		return "s" + s
	}
	if id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return ""
	}
	// Only where a float64 is exact may it be another spelling of an integer.
	if f, err := strconv.ParseFloat(string(id), 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return "n" + strconv.FormatInt(int64(f), 10)
	}
	return "n" + string(id)
}

// answer gives the line that answers the request with this id.
func answer(id json.RawMessage, resp mcp.JSONRPCMessage) []byte {
	switch r := resp.(type) {
	case mcp.JSONRPCResponse:
		line, err := encode(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Result  any             `json:"result"`
		}{"2.0", id, withParams(r.Result)})
		if err == nil {
			return line
		}
	case mcp.JSONRPCError:
		line, err := encode(struct {
			Version string                  `json:"jsonrpc"`
			ID      json.RawMessage         `json:"id"`
			Error   mcp.JSONRPCErrorDetails `json:"error"`
		}{"2.0", id, r.Error})
		if err == nil {
			return line
		}
	}
	return failure(id, mcp.INTERNAL_ERROR, "internal error: the answer cannot be written")
}

// failure gives the line that answers a request with an error; a nil id is null.
func failure(id json.RawMessage, code int, text string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	line, err := encode(struct {
		Version string                  `json:"jsonrpc"`
		ID      json.RawMessage         `json:"id"`
		Error   mcp.JSONRPCErrorDetails `json:"error"`
	}{"2.0", id, mcp.NewJSONRPCErrorDetails(code, text, nil)})
	if err != nil {
		panic("bug: " + err.Error())
	}
	return line
}

// notification gives the line of a notification.
func notification(method string, params any) []byte {
	line, err := encode(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
	if err != nil {
		panic("bug: " + err.Error())
	}
	return line
}

// encode writes v as one line, without a newline, and without the escapes that only HTML needs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
