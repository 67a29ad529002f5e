package crewyard

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
)

// mostOfLine is how long a line may become that comes in pieces.
const mostOfLine = 8 << 20

// BuildEnd is how a build ended: Status is active or superseded where there is
// an image, else failed, and Error says why.
type BuildEnd struct {
	Status DeploymentStatus `json:"status"`
	Error  *BuildError      `json:"error"`
}

type buildMessage struct {
	BuildEnd
	Message   string `json:"message"`
	Continues bool   `json:"continues"`
}

// FollowBuildLog gives the lines of a build's log as they come, to its end.
func (c *Crewyard) FollowBuildLog(ctx context.Context, deployment string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		more := true
		_, err := c.WaitForBuild(ctx, deployment, func(line string) bool {
			more = yield(line, nil)
			return more
		})
		if err != nil && more {
			yield("", err)
		}
	}
}

var errStopped = errors.New("crewyard: the caller wants no more of the log")

// WaitForBuild gives how a build ended. Each line of its log is told as it
// comes, until tell gives false, which ends the waiting with an error; tell may
// be nil.
func (c *Crewyard) WaitForBuild(ctx context.Context, deployment string, tell func(line string) bool) (BuildEnd, error) {
	isEnd := func(kind string) bool { return kind == "end" }
	path := "/v1/deployments/" + url.PathEscape(deployment) + "/logs"
	line := ""
	for message, err := range c.follow(ctx, path, "", isEnd) {
		var told buildMessage
		if err == nil {
			err = exact(message.data, &told)
		}
		if err != nil {
			return BuildEnd{}, fmt.Errorf("crewyard: the log of %s: %w", deployment, err)
		}
		if isEnd(message.kind) {
			return told.BuildEnd, nil
		}
		if line += told.Message; told.Continues && len(line) < mostOfLine {
			continue
		}
		if tell != nil && !tell(line) {
			return BuildEnd{}, errStopped
		}
		line = ""
	}
	return BuildEnd{}, fmt.Errorf("crewyard: the service has nothing more of the log of %s, and did not say how it ended", deployment)
}
