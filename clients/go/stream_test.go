package crewyard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// service gives events 1 to count, a few per connection, the last one terminal.
func service(t *testing.T, count, each int, before func(http.ResponseWriter, int) bool) (*Crewyard, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		if before != nil && before(w, len(asked)) {
			return
		}
		w.Header().Set("Content-Type", eventStream)
		from, _ := strconv.Atoi(r.Header.Get("Last-Event-ID"))
		fmt.Fprint(w, "retry: 1\n\n: keepalive\n\n")
		for id := from + 1; id <= min(from+each, count); id++ {
			kind := EventLog
			if id == count {
				kind = RunCompleted
			}
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: {\"message\": \"line %d\"}\n\n", id, kind, id)
		}
	}))
	t.Cleanup(server.Close)
	client, err := New(server.URL, "crw_key")
	if err != nil {
		t.Fatal(err)
	}
	return client, &asked
}

func read(client *Crewyard, after int) (ids []int, failed error) {
	for event, err := range client.FollowRun(context.Background(), "run_a", after) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, event.Id)
	}
	return ids, nil
}

func TestFollowingGoesOnWhereItBroke(t *testing.T) {
	client, asked := service(t, 5, 2, nil)
	ids, err := read(client, 0)
	if err != nil || !slices.Equal(ids, []int{1, 2, 3, 4, 5}) {
		t.Fatal(ids, err)
	}
	if !slices.Equal(*asked, []string{"", "2", "4"}) {
		t.Fatal(*asked)
	}
}

func TestAnEventThatWasCutOffComesAgain(t *testing.T) {
	client, asked := service(t, 3, 9, func(w http.ResponseWriter, number int) bool {
		if number > 1 {
			return false
		}
		w.Header().Set("Content-Type", eventStream)
		fmt.Fprint(w, "retry: 1\n\nid: 1\nevent: log\ndata: {}\n\nid: 2\nevent: log\ndata: {\"mess")
		return true
	})
	ids, err := read(client, 0)
	if err != nil || !slices.Equal(ids, []int{1, 2, 3}) || !slices.Equal(*asked, []string{"", "1"}) {
		t.Fatal(ids, err, *asked)
	}
}

func TestAFailedUploadDoesNotTellTheSignature(t *testing.T) {
	client, _ := service(t, 1, 1, nil)
	to := &Upload{Method: "PUT", UploadUrl: "http://127.0.0.1:9/upl?token=signature"}
	err := client.SendUpload(context.Background(), to, strings.NewReader("x"), 1)
	if err == nil || strings.Contains(err.Error(), "signature") || !strings.Contains(err.Error(), "127.0.0.1:9/upl") {
		t.Fatal(err)
	}
}

func TestFollowingBeginsBehindWhatIsKnown(t *testing.T) {
	client, _ := service(t, 5, 9, nil)
	if ids, err := read(client, 3); err != nil || !slices.Equal(ids, []int{4, 5}) {
		t.Fatal(ids, err)
	}
}

func TestNothingMoreEndsIt(t *testing.T) {
	client, _ := service(t, 5, 9, func(w http.ResponseWriter, _ int) bool {
		w.WriteHeader(http.StatusNoContent)
		return true
	})
	if ids, err := read(client, 5); err != nil || len(ids) != 0 {
		t.Fatal(ids, err)
	}
}

func refuse(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("X-Request-Id", "req_1")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %q, "message": "No.", "details": {"field": "id"}}}`, code)
	return true
}

func TestARefusalIsAnErrorAtOnce(t *testing.T) {
	client, asked := service(t, 5, 9, func(w http.ResponseWriter, _ int) bool {
		return refuse(w, http.StatusNotFound, "not_found")
	})
	_, err := read(client, 0)
	var refused *APIError
	if !errors.As(err, &refused) || refused.Code != "not_found" || refused.Details["field"] != "id" || refused.RequestID != "req_1" {
		t.Fatal(err)
	}
	if len(*asked) != 1 {
		t.Fatal(*asked)
	}
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	client, asked := service(t, 2, 9, func(w http.ResponseWriter, number int) bool {
		return number == 1 && refuse(w, http.StatusServiceUnavailable, "unavailable")
	})
	if ids, err := read(client, 0); err != nil || !slices.Equal(ids, []int{1, 2}) || len(*asked) != 2 {
		t.Fatal(ids, err, *asked)
	}
}

func setTimes(t *testing.T, newSilence, newStable time.Duration) {
	t.Helper()
	oldSilence, oldStable := silence, stable
	t.Cleanup(func() { silence, stable = oldSilence, oldStable })
	silence, stable = newSilence, newStable
}

func TestAProxyThatCutsEveryConnectionDoesNotEndASilentRun(t *testing.T) {
	setTimes(t, time.Minute, 0)
	client, asked := service(t, 1, 9, func(w http.ResponseWriter, number int) bool {
		w.Header().Set("Content-Type", eventStream)
		fmt.Fprint(w, "retry: 1\n\n: keepalive\n\n")
		return number <= 3*attempts
	})
	if ids, err := read(client, 0); err != nil || !slices.Equal(ids, []int{1}) || len(*asked) != 3*attempts+1 {
		t.Fatal(ids, err, len(*asked))
	}
}

func TestAStreamThatClosesAtOnceIsGivenUp(t *testing.T) {
	client, asked := service(t, 1, 0, nil)
	if _, err := read(client, 0); err == nil || len(*asked) != attempts+1 {
		t.Fatal(err, len(*asked))
	}
}

func TestASilentStreamIsGivenUp(t *testing.T) {
	setTimes(t, 100*time.Millisecond, 0)
	gone := make(chan struct{})
	client, asked := service(t, 1, 9, func(w http.ResponseWriter, _ int) bool {
		w.Header().Set("Content-Type", eventStream)
		fmt.Fprint(w, "retry: 1\n\n: keepalive\n\n")
		w.(http.Flusher).Flush()
		<-gone
		return true
	})
	_, err := read(client, 0)
	close(gone)
	if err == nil || len(*asked) != attempts+1 {
		t.Fatal(err, len(*asked))
	}
}

func TestACallerWhoStopsIsNotCalledAgain(t *testing.T) {
	client, asked := service(t, 5, 9, nil)
	for range client.FollowRun(context.Background(), "run_a", 0) {
		break
	}
	ctx, stop := context.WithCancelCause(context.Background())
	stop(errors.New("enough"))
	for _, err := range client.FollowRun(ctx, "run_a", 0) {
		if err == nil || err.Error() != "enough" {
			t.Fatal(err)
		}
	}
	if len(*asked) != 1 {
		t.Fatal(*asked)
	}
}

func TestARedirectMakesNoOtherCallOfOneThatChangesSomething(t *testing.T) {
	client, asked := service(t, 5, 9, func(w http.ResponseWriter, _ int) bool {
		w.Header().Set("Location", "/v1/runs")
		w.WriteHeader(http.StatusMovedPermanently)
		return true
	})
	_, err := client.StartRunWithResponse(context.Background(), nil, RunCreate{Deployment: "research"})
	var refused *APIError
	if !errors.As(err, &refused) || refused.Code != "redirected" || refused.Status != http.StatusMovedPermanently {
		t.Fatal(err)
	}
	if len(*asked) != 1 {
		t.Fatal(*asked)
	}
}

func TestTheKeyGoesToNoOtherHost(t *testing.T) {
	keys := make(chan string, 1)
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Authorization")
		fmt.Fprint(w, "bytes")
	}))
	t.Cleanup(bucket.Close)
	client, _ := service(t, 5, 9, func(w http.ResponseWriter, _ int) bool {
		w.Header().Set("Location", bucket.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	})
	file, err := client.DownloadArtifactWithResponse(context.Background(), "run_a", "report.md", nil)
	if err != nil || string(file.Body) != "bytes" {
		t.Fatal(err)
	}
	if key := <-keys; key != "" {
		t.Fatal(key)
	}
}

func TestAPageWhereJSONOrAStreamIsExpectedSaysSo(t *testing.T) {
	client, asked := service(t, 5, 9, func(w http.ResponseWriter, _ int) bool {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<html>Sign in</html>")
		return true
	})
	_, list := client.ListRunsWithResponse(context.Background(), nil)
	_, start := client.StartRunWithResponse(context.Background(), nil, RunCreate{Deployment: "research"})
	_, log := client.ReadRunLogWithResponse(context.Background(), "run_a")
	_, stream := read(client, 0)
	for _, err := range []error{list, start, log, stream} {
		var foreign *APIError
		if !errors.As(err, &foreign) || foreign.Code != "foreign_answer" || foreign.Passing() {
			t.Fatal(err)
		}
	}
	if len(*asked) != 4 {
		t.Fatal(*asked)
	}
	// A crew's file may be a page.
	file, err := client.DownloadArtifactWithResponse(context.Background(), "run_a", "report.html", nil)
	if err != nil || string(file.Body) != "<html>Sign in</html>" {
		t.Fatal(err)
	}
}

func TestABuildsLogIsLinesAndTellsHowItEnded(t *testing.T) {
	client, asked := service(t, 5, 9, func(w http.ResponseWriter, number int) bool {
		w.Header().Set("Content-Type", eventStream)
		if number%2 == 1 {
			fmt.Fprint(w, "retry: 1\n\nid: 1.4\nevent: log\ndata: {\"message\": \"ab\", \"continues\": true}\n\n")
			return true
		}
		fmt.Fprint(w, "id: 1.6\nevent: log\ndata: {\"message\": \"cd\"}\n\nid: 2.0\nevent: log\ndata: {\"message\": \"\"}\n\n")
		fmt.Fprint(w, "id: end\nevent: end\ndata: {\"status\": \"failed\", \"error\": {\"reason\": \"BuildFailed\", \"message\": \"No.\"}}\n\n")
		return true
	})
	var lines []string
	end, err := client.WaitForBuild(context.Background(), "dep_a", func(line string) bool {
		lines = append(lines, line)
		return true
	})
	if err != nil || end.Status != "failed" || end.Error == nil || end.Error.Message != "No." {
		t.Fatal(end, err)
	}
	if !slices.Equal(lines, []string{"abcd", ""}) || !slices.Equal(*asked, []string{"", "1.4"}) {
		t.Fatal(lines, *asked)
	}
	lines = nil
	for line, err := range client.FollowBuildLog(context.Background(), "dep_a") {
		if lines = append(lines, line); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(lines, []string{"abcd", ""}) {
		t.Fatal(lines)
	}
	for range client.FollowBuildLog(context.Background(), "dep_a") {
		break
	}
}

func TestNumbersStayWhatTheyAre(t *testing.T) {
	const large = "9007199254740993"
	client, _ := service(t, 5, 9, func(w http.ResponseWriter, _ int) bool {
		w.Header().Set("Content-Type", eventStream)
		fmt.Fprintf(w, "id: 1\nevent: run.completed\ndata: {\"duration_ms\": 12, \"output\": {\"id\": %s}}\n\n", large)
		return true
	})
	for event, err := range client.FollowRun(context.Background(), "run_a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		data, err := DataOf(event)
		found := data.Output.(map[string]any)["id"]
		if err != nil || data.DurationMs != 12 || fmt.Sprint(found) != large {
			t.Fatal(data, err)
		}
	}
}

func TestMessagesComeOutWholeHoweverTheyAreCut(t *testing.T) {
	text := "\r\nid: 1\r\nevent: log\r\ndata: a\r\ndata:b\r\n\r\n:x\nid: 2\rdata:\r\rdata: \xc3\xbc\n\nretry: 7\ndata: cut"
	want := []message{{"1", "log", "a\nb"}, {"2", "", ""}, {"2", "", "ü"}}
	for size := 1; size <= len(text); size++ {
		scan := scanner{}
		var got []message
		for piece := range slices.Chunk([]byte(text), size) {
			if _, err := scan.push(piece, func(found message) bool { got = append(got, found); return true }); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, want) || scan.retry.Milliseconds() != 7 {
			t.Fatal(size, got, scan.retry)
		}
	}
}

func TestAMessageWithoutEndIsRefused(t *testing.T) {
	scan := scanner{}
	_, err := scan.push(make([]byte, most+1), nil)
	if !errors.Is(err, errTooLong) {
		t.Fatal(err)
	}
}
