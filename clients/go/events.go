package crewyard

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The types of events that every run can have; a crew may make up others.
const (
	RunStarted     = "run.started"
	RunCompleted   = "run.completed"
	RunFailed      = "run.failed"
	RunCanceled    = "run.canceled"
	EventLog       = "log"
	EventArtifact  = "artifact"
	AgentStarted   = "agent.started"
	AgentCompleted = "agent.completed"
	AgentError     = "agent.error"
	ToolCalled     = "tool.called"
	ToolResult     = "tool.result"
	ToolError      = "tool.error"
	EventUsage     = "usage"
)

// EventData is what events carry; DataOf fills in what an event's type has.
type EventData struct {
	RunID     string    `json:"run_id"`
	Timestamp time.Time `json:"timestamp"`

	DeploymentID string `json:"deployment_id"`
	// DurationMs is that of an ended run, or of the call of a model, if it is known.
	DurationMs int64 `json:"duration_ms"`
	Output     any   `json:"output"`
	// Error is an object with reason and message in run.failed.
	Error any `json:"error"`

	Message string `json:"message"`
	Level   string `json:"level"`

	Name        string `json:"name"`
	Size        int64  `json:"size"`
	ContentType string `json:"content_type"`
	SHA256      string `json:"sha256"`
	Partial     bool   `json:"partial"`

	Agent string `json:"agent"`
	Task  string `json:"task"`
	Tool  string `json:"tool"`
	Input any    `json:"input"`

	Model            string `json:"model"`
	PromptTokens     int64  `json:"prompt_tokens"`
	CompletionTokens int64  `json:"completion_tokens"`
}

// DataOf gives an event's data with types; Event.Data has it as it came. It
// fails where a crew gave one of these names to something of another type.
// Numbers in what a crew says are json.Number, digit by digit as they came.
func DataOf(event Event) (EventData, error) {
	var data EventData
	raw, err := json.Marshal(event.Data)
	if err == nil {
		err = exact(string(raw), &data)
	}
	if err != nil {
		return data, fmt.Errorf("crewyard: event %d (%s): %w", event.Id, event.Type, err)
	}
	return data, nil
}

// IsLast tells whether nothing follows an event of this type.
func IsLast(eventType string) bool {
	return eventType == RunCompleted || eventType == RunFailed || eventType == RunCanceled
}

// FollowRun gives a run's events after one that is known already (0: from the
// first), to the last one. It comes back by itself where the connection breaks,
// and ends with an error where that fails ten times in a row; a connection that
// lasts 10 s and then breaks does not count.
func (c *Crewyard) FollowRun(ctx context.Context, run string, after int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		last := ""
		if after > 0 {
			last = strconv.Itoa(after)
		}
		path := "/v1/runs/" + url.PathEscape(run) + "/events"
		for message, err := range c.follow(ctx, path, last, IsLast) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			event := Event{Type: message.kind}
			if event.Id, err = strconv.Atoi(message.id); err == nil {
				err = exact(message.data, &event.Data)
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("crewyard: an event of %s cannot be read: %w", run, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// exact reads JSON without making floating-point numbers of what has no type:
// those above 2^53 would become others.
func exact(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}
