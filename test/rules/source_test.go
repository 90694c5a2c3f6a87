// Package rules holds the rules of the repository that no compiler checks: which
// package may import which, what is documented, what is generated. It reads the
// source files themselves, so that files of every platform and build tag count.
package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// module is the import path of the repository's root.
const module = "github.com/exocomp/exocomp/"

// sourceFile is one Go file of the repository.
type sourceFile struct {
	path      string   // relative to the root, with slashes
	dir       string   // of path; what follows module in the package's import path
	pkg       string   // the package clause
	doc       string   // the package comment, if this file has it
	imports   []string // import paths
	lines     int
	generated bool
	test      bool // a _test.go file
}

// root is the repository's root directory.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("this test belongs two directories below go.mod: %v", err)
	}
	return dir
}

// sources parses every Go file of the module: all but testdata, hidden
// directories and modules of their own.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	base := root(t)
	var files []sourceFile
	err := filepath.WalkDir(base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(base, name)
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		file, err := parse(base, name)
		if err != nil {
			return err
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("found %d Go files below %s: the walk is broken", len(files), base)
	}
	return files
}

// enter answers fs.SkipDir for a directory whose files are not the module's.
func enter(base, dir string) error {
	if dir == base {
		return nil
	}
	name := filepath.Base(dir)
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func parse(base, name string) (sourceFile, error) {
	relative, err := filepath.Rel(base, name)
	if err != nil {
		return sourceFile{}, err
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return sourceFile{}, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, content, parser.ParseComments|parser.ImportsOnly)
	if err != nil {
		return sourceFile{}, err
	}
	slashed := filepath.ToSlash(relative)
	file := sourceFile{
		path:      slashed,
		dir:       path.Dir(slashed),
		pkg:       tree.Name.Name,
		doc:       tree.Doc.Text(),
		lines:     strings.Count(string(content), "\n"),
		generated: ast.IsGenerated(tree),
		test:      strings.HasSuffix(slashed, "_test.go"),
	}
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return sourceFile{}, err
		}
		file.imports = append(file.imports, imported)
	}
	return file, nil
}
