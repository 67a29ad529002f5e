package crewyard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	attempts     = 10

	eventStream = "text/event-stream"
)

var (
	// A keep-alive comes every 15 s: silence for longer is a broken connection.
	silence = time.Minute
	// A connection that lasts this long worked, even without messages: proxies
	// cut idle streams.
	stable = 10 * time.Second
)

// follow gives the messages of a stream to the one that ends it, or until the
// service says that there are no more.
func (c *Crewyard) follow(
	ctx context.Context, path, last string, ends func(string) bool,
) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		scan := scanner{lastID: last, retry: firstPause}
		for failures := 0; ; {
			over := false
			worked, err := c.connect(ctx, path, &scan, func(found message) bool {
				failures = 0
				over = !yield(found, nil) || ends(found.kind)
				return !over
			})
			if over || errors.Is(err, errNoMore) {
				return
			}
			if ctx.Err() != nil {
				yield(message{}, context.Cause(ctx))
				return
			}
			var refused *APIError
			if worked {
				failures = 0
			}
			lasting := errors.As(err, &refused) && !refused.Passing()
			if failures++; failures > attempts || lasting || errors.Is(err, errTooLong) {
				yield(message{}, err)
				return
			}
			wait := pause(failures, scan.retry)
			if refused != nil {
				wait = max(wait, refused.RetryAfter)
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}

var errNoMore = errors.New("crewyard: there is nothing more")

// connect reads one connection until it ends, fails, or take wants no more. It
// tells whether the connection worked for a while.
func (c *Crewyard) connect(
	ctx context.Context, path string, scan *scanner, take func(message) bool,
) (worked bool, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return false, err
	}
	request.Header.Set("Accept", eventStream)
	if scan.lastID != "" {
		request.Header.Set("Last-Event-ID", scan.lastID)
	}
	quiet := time.AfterFunc(silence, end)
	defer quiet.Stop()
	response, err := c.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNoContent {
		return false, errNoMore
	}
	opened, heard := time.Now(), true
	defer func() { worked = heard && time.Since(opened) >= stable }()
	scan.restart()
	buffer := make([]byte, 32*1024)
	for {
		count, err := response.Body.Read(buffer)
		heard = quiet.Reset(silence)
		going, tooLong := scan.push(buffer[:count], take)
		switch {
		case !going:
			return false, nil
		case tooLong != nil:
			return false, tooLong
		case errors.Is(err, io.EOF):
			return false, errors.New("crewyard: the event stream ended before its last event")
		case err != nil:
			return false, fmt.Errorf("crewyard: the connection broke: %w", err)
		}
	}
}

// pause doubles with each failure in a row; half of it is chance.
func pause(failures int, retry time.Duration) time.Duration {
	whole := min(longestPause, retry<<min(failures-1, 16))
	return whole/2 + rand.N(whole/2+1)
}
