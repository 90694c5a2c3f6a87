package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plannedValues cuts the variables off a plan's JSON, which holds them in clear.
func plannedValues(doc string) string {
	before, rest, found := strings.Cut(doc, `"variables":{`)
	if !found {
		return doc
	}
	_, after, _ := strings.Cut(rest, `"planned_values"`)
	return before + after
}

// holding returns the files below dir, but not those below except, that hold
// one of the texts.
func holding(t *testing.T, dir, except string, texts ...string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == except:
			return filepath.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				found = append(found, path+": "+text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
