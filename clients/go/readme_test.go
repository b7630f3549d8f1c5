// The README holds the very code of example_test.go.

package postroad_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestReadme(t *testing.T) {
	readme, examples := withoutIndent(t, "README.md"), withoutIndent(t, "example_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) != 6 {
		t.Fatalf("the README has %d blocks of Go, not 6", len(blocks))
	}
	for _, block := range blocks {
		if code := strings.TrimPrefix(block[1], "import "); !strings.Contains(examples, code) {
			t.Errorf("not in example_test.go:\n%s", code)
		}
	}
}

func withoutIndent(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(string(text), "")
}
