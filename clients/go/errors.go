package crewyard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const mostOfError = 1 << 20

// APIError is an answer with 4xx or 5xx, a redirect that is not followed
// ("redirected"), or a good answer of something else than Crewyard, such as a
// proxy or a page to sign in ("foreign_answer"). Code is the stable word to branch on:
//
//	var refused *crewyard.APIError
//	if errors.As(err, &refused) && refused.Code == "queue_full" { … }
type APIError struct {
	Status  int
	Code    string
	Message string
	Details map[string]any
	// RequestID finds the request in the log of the service.
	RequestID string
	// RetryAfter is how long the service asks to wait; 0 where it does not say.
	RetryAfter time.Duration
}

func (e *APIError) Error() string {
	return fmt.Sprintf("crewyard: %s (%d %s)", e.Message, e.Status, e.Code)
}

// Passing tells whether the same request may succeed later.
func (e *APIError) Passing() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= 500
}

func checked(response *http.Response, err error) (*http.Response, error) {
	var failed *url.Error
	if errors.As(err, &failed) {
		// The query of an object store's address is a signature.
		failed.URL, _, _ = strings.Cut(failed.URL, "?")
	}
	moved := err == nil && response.StatusCode >= 300 && response.StatusCode < 400 && response.Header.Get("Location") != ""
	if err != nil || response.StatusCode < 400 && !moved {
		return response, err
	}
	defer response.Body.Close()
	found := &APIError{
		Status:    response.StatusCode,
		Code:      "unknown",
		Message:   "the service answered " + response.Status,
		RequestID: response.Header.Get("X-Request-Id"),
	}
	if moved {
		found.Code = "redirected"
		found.Message = "the answer is a redirect to " + response.Header.Get("Location") + ": make the client with the address that it leads to"
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		found.RetryAfter = time.Duration(seconds) * time.Second
	}
	var told Error
	body, err := io.ReadAll(io.LimitReader(response.Body, mostOfError))
	if err == nil && json.Unmarshal(body, &told) == nil && told.Error.Code != "" {
		found.Code, found.Message, found.Details = told.Error.Code, told.Error.Message, told.Error.Details
	}
	return nil, found
}

// demanded gives an *APIError for an answer of another type than the service's.
func demanded(response *http.Response, wanted string) (*http.Response, error) {
	kind := strings.ToLower(response.Header.Get("Content-Type"))
	if strings.Contains(kind, wanted) {
		return response, nil
	}
	defer response.Body.Close()
	if kind == "" {
		kind = "nothing of a known type"
	}
	return nil, &APIError{
		Status: response.StatusCode,
		Code:   "foreign_answer",
		Message: fmt.Sprintf("%s answers with %s where %s is expected; is the address right, and does no login stand before it?",
			response.Request.URL.Host, kind, wanted),
		RequestID: response.Header.Get("X-Request-Id"),
	}
}
