package tools

import "encoding/json"

// resultSchema is the output schema of every tool that runs something. It is written out, not
// derived, because a client reads it: each field says what it means and when it is there.
var resultSchema = json.RawMessage(`{
  "type": "object",
  "properties": {
    "status": {"type": "string", "enum": ["exited", "timeout", "signaled", "cancelled", "limit", "running", "refused", "error", "done", "approval_required"]},
    "exit_code": {"type": "integer", "description": "With status exited."},
    "signal": {"type": "string", "description": "The signal that ended the command, with status signaled."},
    "limit": {"type": "string", "enum": ["processes", "memory", "disk"], "description": "A limit that was reached."},
    "run_id": {"type": "string", "description": "With status running: names the run in later calls."},
    "duration_ms": {"type": "integer", "minimum": 0},
    "output": {"type": "string", "description": "Standard output and standard error as they came; the middle is cut out if it is long."},
    "output_dropped_bytes": {"type": "integer", "minimum": 0},
    "output_file": {"type": "string", "description": "Where the user's machine has all of the output while this conversation lasts, if bytes were dropped. Runs do not see it; read it with run_id and offset."},
    "workspace": {
      "type": "object",
      "description": "Paths are relative to the workspace.",
      "properties": {
        "landed": {"type": "boolean", "description": "Whether the run's changes are in the workspace."},
        "added": {"type": "array", "items": {"type": "string"}},
        "modified": {"type": "array", "items": {"type": "string"}},
        "deleted": {"type": "array", "items": {"type": "string"}},
        "conflicts": {
          "type": "array",
          "description": "Changed by someone else meanwhile: that version stays at path, the run's is at kept_as (empty: the run had deleted it).",
          "items": {"type": "object", "properties": {"path": {"type": "string"}, "kept_as": {"type": "string"}}, "required": ["path", "kept_as"]}
        },
        "withheld": {
          "type": "array",
          "description": "Changes that did not land although the run did.",
          "items": {"type": "object", "properties": {"path": {"type": "string"}, "why": {"type": "string"}}, "required": ["path", "why"]}
        },
        "discarded": {"type": "integer", "minimum": 0, "description": "How many changes were thrown away."}
      },
      "required": ["landed", "added", "modified", "deleted", "conflicts", "withheld", "discarded"]
    },
    "network": {
      "type": "object",
      "properties": {"denied": {"type": "array", "items": {"type": "string"}}},
      "required": ["denied"]
    },
    "environment": {"type": "string", "description": "With the package tools."},
    "additive": {"type": "boolean", "description": "Whether nothing that was installed before changed."},
    "installed": {
      "type": "array",
      "description": "What was installed; version is empty for a package that was removed, was for one that is new.",
      "items": {"type": "object", "properties": {"name": {"type": "string"}, "version": {"type": "string"}, "was": {"type": "string"}}, "required": ["name", "version", "was"]}
    },
    "request_id": {"type": "string", "description": "The request that waits for the user's approval."},
    "ended_processes": {"type": "integer", "minimum": 0, "description": "Background processes that were still running and were ended."},
    "notes": {"type": "array", "items": {"type": "string"}}
  },
  "required": ["status", "duration_ms", "output", "output_dropped_bytes", "workspace", "network", "ended_processes", "notes"]
}`)
