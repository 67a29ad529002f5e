// Kstatus says what tools that wait by kstatus (Flux, kubectl appliers) make of an object: it reads objects as JSON
// from standard input, one after another, and prints the status and message of each as a line of JSON. The tests of
// the kinds' conditions use it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for {
		object := map[string]any{}
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		found, err := status.Compute(&unstructured.Unstructured{Object: numbers(object)})
		if err != nil {
			return err
		}
		if err := encoder.Encode(map[string]string{"status": string(found.Status), "message": found.Message}); err != nil {
			return err
		}
	}
}

// numbers makes whole numbers of JSON what the library expects them to be.
func numbers(object map[string]any) map[string]any {
	for key, value := range object {
		object[key] = whole(value)
	}
	return object
}

func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return numbers(value)
	case []any:
		for index, item := range value {
			value[index] = whole(item)
		}
		return value
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
		return value
	default:
		return value
	}
}
