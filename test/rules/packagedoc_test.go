package rules

import (
	"strings"
	"testing"
)

// longest is the number of lines at which a file is two files.
const longest = 500

func TestEveryPackageHasOneComment(t *testing.T) {
	type pkg struct {
		name      string
		commented []string // the files with a package comment
	}
	packages := map[string]*pkg{}
	for _, file := range sources(t) {
		// An external test package shares the directory and the comment.
		name := strings.TrimSuffix(file.pkg, "_test")
		p := packages[file.dir]
		if p == nil {
			p = &pkg{name: name}
			packages[file.dir] = p
		}
		if file.doc == "" || file.generated {
			continue
		}
		p.commented = append(p.commented, file.path)
		if want := "Package " + name + " "; name != "main" && !strings.HasPrefix(file.doc, want) {
			t.Errorf("%s: the package comment begins %q, want %q", file.path, firstLine(file.doc), want+"…")
		}
	}
	for dir, p := range packages {
		switch len(p.commented) {
		case 0:
			t.Errorf("package %s has no comment: say in one file what it is for", dir)
		case 1:
		default:
			t.Errorf("package %s has comments in %s: keep one", dir, strings.Join(p.commented, ", "))
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	for _, file := range sources(t) {
		if file.lines > longest && !file.generated {
			t.Errorf("%s has %d lines, more than %d: split it by noun or phase", file.path, file.lines, longest)
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
