// Command kstatus reads Kubernetes objects in JSON, one per line, and prints for each a line of JSON: the status that
// sigs.k8s.io/cli-utils computes for it and its message. An object that it cannot judge ends the program with 1.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type verdict struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func judge(in io.Reader, out io.Writer) error {
	objects := json.NewDecoder(in)
	verdicts := json.NewEncoder(out)
	for n := 1; ; n++ {
		var text json.RawMessage
		switch err := objects.Decode(&text); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("object %d is not JSON: %w", n, err)
		}
		object := unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return fmt.Errorf("object %d is none of Kubernetes: %w", n, err)
		}
		computed, err := status.Compute(&object)
		if err != nil {
			return fmt.Errorf("object %d has no status that can be computed: %w", n, err)
		}
		if err := verdicts.Encode(verdict{computed.Status.String(), computed.Message}); err != nil {
			return err
		}
	}
}

func main() {
	if err := judge(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}
