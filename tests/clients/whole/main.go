// From an archive to an artifact, told as lines of JSON. Called by tests/clients/test_whole.py.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	crewyard "crewyard.dev/client"
)

func tell(what string, value any) {
	line, _ := json.Marshal([]any{what, value})
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func refused(_ any, err error) {
	var found *crewyard.APIError
	if !errors.As(err, &found) {
		tell("refused", fmt.Sprint(err))
		return
	}
	tell("refused", []any{found.Status, found.Code, found.Details["field"]})
}

func main() {
	ctx := context.Background()
	name, archive := os.Args[1], os.Args[2]
	client, err := crewyard.New(os.Getenv("CREWYARD_URL"), os.Getenv("CREWYARD_API_KEY"))
	check(err)
	nobody, err := crewyard.New(os.Getenv("CREWYARD_URL"), "crw_no")
	check(err)

	_, err = client.CreateProjectWithResponse(ctx, crewyard.ProjectCreate{Name: name})
	check(err)
	many := 1000
	refused(client.CreateProjectWithResponse(ctx, crewyard.ProjectCreate{Name: name}))
	refused(client.ListRunsWithResponse(ctx, &crewyard.ListRunsParams{PerPage: &many}))
	refused(client.GetRunWithResponse(ctx, "run_none", nil))
	refused(nobody.ListProjectsWithResponse(ctx, nil))

	content, err := os.ReadFile(archive)
	check(err)
	upload, err := client.AnnounceUploadWithResponse(ctx, crewyard.UploadCreate{Project: name, Size: len(content)})
	check(err)
	check(client.SendUpload(ctx, &upload.JSON201.Data, bytes.NewReader(content), int64(len(content))))
	message := "By a client"
	made := crewyard.DeploymentCreate{
		Project: name, BuildContextUrl: &upload.JSON201.Data.BuildContextUrl, Message: &message,
	}
	deployment, err := client.CreateDeploymentWithResponse(ctx, nil, made)
	check(err)
	lines, plain := 0, true
	end, err := client.WaitForBuild(ctx, string(deployment.JSON201.Data.Id), func(line string) bool {
		lines, plain = lines+1, plain && !strings.HasPrefix(line, "{") && !strings.Contains(line, "\n")
		return true
	})
	check(err)
	tell("log", lines > 0 && plain)
	tell("build", end.Status)
	deployments, err := client.ListDeploymentsWithResponse(ctx, &crewyard.ListDeploymentsParams{Project: name})
	check(err)
	var seen [][]any
	for _, found := range deployments.JSON200.Data {
		seen = append(seen, []any{found.Status, found.Message})
	}
	tell("deployments", seen)

	input := map[string]any{"name": "Ada"}
	started, err := client.StartRunWithResponse(ctx, nil, crewyard.RunCreate{Deployment: name, Input: &input})
	check(err)
	run, last, inOrder := started.JSON201.Data.Id, 0, true
	for event, err := range client.FollowRun(ctx, run, 0) {
		check(err)
		data, err := crewyard.DataOf(event)
		check(err)
		inOrder, last = inOrder && event.Id == last+1, event.Id
		switch event.Type {
		case crewyard.EventLog:
			tell("line", data.Message)
		case crewyard.RunCompleted:
			tell("output", data.Output)
		}
	}
	tell("in order", inOrder)
	again := 0
	for _, err := range client.FollowRun(ctx, run, last) {
		check(err)
		again++
	}
	tell("after the end", again)

	files, err := client.ListArtifactsWithResponse(ctx, run, nil)
	check(err)
	var names [][]any
	for _, file := range files.JSON200.Data {
		names = append(names, []any{file.Name, file.Size})
	}
	tell("artifacts", names)
	file, err := client.DownloadArtifactWithResponse(ctx, run, "nested/report.md", nil)
	check(err)
	tell("artifact", string(file.Body))
	ended, err := client.GetRunWithResponse(ctx, run, nil)
	check(err)
	tell("status", ended.JSON200.Data.Status)
	one := 1
	events, err := client.ListEventsWithResponse(ctx, run, &crewyard.ListEventsParams{PerPage: &one})
	check(err)
	tell("page", []any{len(events.JSON200.Data), events.JSON200.Pagination.Total == last})
	refused(client.CancelRunWithResponse(ctx, run))
	removed, err := client.DeleteProjectWithResponse(ctx, name)
	check(err)
	if removed.StatusCode() != http.StatusNoContent {
		os.Exit(1)
	}
}
