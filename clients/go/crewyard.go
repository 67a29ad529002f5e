// Package crewyard is the Go client of Crewyard, which runs crews on Kubernetes.
//
// The calls and their types are generated from the API's description; this
// file, errors.go, events.go and stream.go add what a generator cannot know:
// the key, errors as Go errors, event streams that reconnect, and uploads.
package crewyard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Version is that of the API the client was made for.
const Version = "0.1.0"

const mostRedirects = 10

const acceptJSON = "application/json, */*;q=0.5"

// Crewyard is one installation. All calls end with WithResponse, as in
// StartRunWithResponse; an answer with 4xx or 5xx is an *APIError,
// and so is a redirect of a call that changes something.
type Crewyard struct {
	*ClientWithResponses
	base string
	key  string
	http *http.Client
	// calls is http, careful about redirects.
	calls *http.Client
}

// Option changes how New connects.
type Option func(*Crewyard)

// WithHTTP replaces http.DefaultClient. Its Timeout must be 0 where events are
// followed: a timeout of the whole answer would end each stream.
func WithHTTP(client *http.Client) Option {
	return func(c *Crewyard) { c.http = client }
}

// New gives a client of the installation at an address, with an API key.
func New(address, key string, options ...Option) (*Crewyard, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme == "" || parsed.Host == "" {
		return nil, fmt.Errorf("crewyard: %q is not the address of an installation, such as https://crewyard.example.com", address)
	}
	c := &Crewyard{base: strings.TrimRight(address, "/"), key: key, http: http.DefaultClient}
	for _, option := range options {
		option(c)
	}
	c.calls = careful(c.http)
	c.ClientWithResponses, err = NewClientWithResponses(c.base, WithHTTPClient(c))
	return c, err
}

// Do sends a request of the generated code with the key. An answer with 4xx or
// 5xx becomes an *APIError, and so does one that is none of the service.
func (c *Crewyard) Do(request *http.Request) (*http.Response, error) {
	wanted := expected(request)
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("User-Agent", "crewyard-go/"+Version)
	if request.Header.Get("Accept") == "" {
		// What can come as a stream comes as JSON where JSON is named.
		request.Header.Set("Accept", acceptJSON)
	}
	response, err := checked(c.calls.Do(request))
	if err != nil || wanted == "" || response.StatusCode == http.StatusNoContent {
		return response, err
	}
	return demanded(response, wanted)
}

// expected is what the type of a good answer has in it; empty where it may be
// anything: a crew's file, or what the caller asked for.
func expected(request *http.Request) string {
	switch accept := request.Header.Get("Accept"); {
	case accept == eventStream:
		return eventStream
	case accept != "" || strings.Contains(request.URL.Path, "/artifacts/"):
		return ""
	case strings.HasSuffix(request.URL.Path, "/logs"):
		return "text/plain"
	default:
		return "json"
	}
}

// careful gives a client that follows redirects only of what reads, as a POST
// would become a GET, and shows the key to no other host.
func careful(client *http.Client) *http.Client {
	made, theirs := *client, client.CheckRedirect
	made.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch first := via[0]; {
		case first.Method != http.MethodGet:
			return http.ErrUseLastResponse
		case next.URL.Host != first.URL.Host:
			next.Header.Del("Authorization")
		}
		if theirs != nil {
			return theirs(next, via)
		}
		if len(via) >= mostRedirects {
			return errors.New("crewyard: the redirects do not end")
		}
		return nil
	}
	return &made
}

// SendUpload sends an archive of size bytes to the address that AnnounceUpload
// gave. That is signed: no key goes along.
func (c *Crewyard) SendUpload(ctx context.Context, to *Upload, archive io.Reader, size int64) error {
	request, err := http.NewRequestWithContext(ctx, string(to.Method), to.UploadUrl, archive)
	if err != nil {
		return err
	}
	request.ContentLength = size
	for name, value := range to.Headers {
		request.Header.Set(name, value)
	}
	response, err := checked(c.http.Do(request))
	if err != nil {
		return err
	}
	return response.Body.Close()
}
