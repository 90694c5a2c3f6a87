package ansible

import (
	"path/filepath"
	"regexp"
	"strings"
)

// tree returns the directory that the snapshot was taken of, as the person would
// name it, or empty where that is not known.
func (p Playbook) tree() string {
	tree, ok := strings.CutSuffix(p.Path, "/"+p.Entry)
	if !ok || !filepath.IsAbs(p.Path) {
		return ""
	}
	if tree == "" {
		return "/"
	}
	return tree
}

// Theirs returns text of a run, in which a person's files have the names of
// their snapshot, with the names that the person knows.
func (p Playbook) Theirs(text string) string {
	if p.Snapshot == "" || p.Path == "" || !strings.Contains(text, p.Snapshot) {
		return text
	}
	entry := filepath.Join(p.Snapshot, filepath.FromSlash(p.Entry))
	if tree := p.tree(); tree != "" {
		return strings.NewReplacer(entry, p.Path, p.Snapshot+"/", strings.TrimSuffix(tree, "/")+"/", p.Snapshot, tree).Replace(text)
	}
	return strings.NewReplacer(entry, p.Path, p.Snapshot+"/", "").Replace(text)
}

// complaint is what Ansible says where it stops before a task: the words, and
// the place in a file, where it names one.
type complaint struct {
	text               string
	file, line, column string
}

func (c complaint) String() string {
	if c.file == "" {
		return c.text
	}
	return c.file + ", line " + c.line + ", column " + c.column + ": " + c.text
}

// missing reports whether something was not found that may lie outside the
// snapshot.
func (c complaint) missing() bool {
	text := strings.ToLower(c.text)
	for _, s := range []string{"not found", "not find", "unable to retrieve file", "couldn't resolve module"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

const yamlError = "Syntax Error while loading YAML."

// errorPlace is where the mistake is, in either form.
var errorPlace = regexp.MustCompile(`^(?:The error appears to be in '(.+)': line ([0-9]+), column ([0-9]+)|Origin: (.+):([0-9]+):([0-9]+)$)`)

// complaintOf reads the newest complaint in the lines of a log. ansible-core up
// to 2.18 says it behind `ERROR! `, the place in a sentence of its own, and what
// is wrong in a YAML file only after what would be wrong if it were JSON; later
// ones say `[ERROR]: ` and `Origin: file:line:column`.
func complaintOf(lines []string) (c complaint) {
	begin := -1
	for i := len(lines) - 1; i >= 0 && begin < 0; i-- {
		for _, prefix := range []string{"ERROR! ", "[ERROR]: "} {
			if text, ok := strings.CutPrefix(strings.TrimSpace(lines[i]), prefix); ok {
				begin, c.text = i, text
			}
		}
	}
	if begin < 0 {
		return c
	}
	var said []string // what follows the first line at once
	inText := true
	for i, line := range lines[begin+1:] {
		line = strings.TrimSpace(line)
		if m := errorPlace.FindStringSubmatch(line); m != nil {
			c.file, c.line, c.column = m[1]+m[4], m[2]+m[5], m[3]+m[6]
			break
		}
		if line == yamlError && begin+2+i < len(lines) {
			c.text, said, inText = "it is not YAML: "+strings.TrimSpace(lines[begin+2+i]), nil, false
			continue
		}
		inText = inText && line != "" && !strings.HasPrefix(line, "If you are using a module")
		if inText {
			said = append(said, line)
		}
	}
	c.text = oneLine(strings.Join(append([]string{c.text}, said...), " "), maxMessage)
	return c
}
