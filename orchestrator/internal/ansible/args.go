package ansible

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// argument is an option of ansible-playbook that a person may pass through.
type argument struct {
	long, short string // without dashes
	value       bool
}

// arguments is the allow-list. Others would change what exocomp answers for:
// the inventory, the connection, who logs in, where code is loaded from.
var arguments = []argument{
	{long: "check", short: "C"},
	{long: "diff", short: "D"},
	{long: "verbose", short: "v"},
	{long: "limit", short: "l", value: true},
	{long: "tags", short: "t", value: true},
	{long: "skip-tags", value: true},
	{long: "start-at-task", value: true},
	{long: "extra-vars", short: "e", value: true},
	{long: "forks", short: "f", value: true},
}

const (
	maxForks     = 500
	maxVerbosity = 6
)

// ParseArgs checks what a person passes through to ansible-playbook and returns
// it in long form. Every mistake is reported, as one [orchestrator.CodeInvalid]
// error. A file (`-e @file`, `--limit @file`) is one of the snapshot, relative
// to the playbook's directory.
func ParseArgs(args []string) ([]string, error) {
	var out []string
	var mistakes orchestrator.Mistakes
	for len(args) > 0 {
		var parsed []string
		var err error
		parsed, args, err = nextArg(args)
		mistakes.Add(err)
		out = append(out, parsed...)
	}
	if n := countOf(out, "--verbose"); n > maxVerbosity {
		mistakes.Addf("-v %d times is more than %d", n, maxVerbosity)
	}
	if countOf(out, "--limit") > 1 {
		// Ansible would silently take the last one.
		mistakes.Addf("--limit is given twice (join the patterns: --limit 'web,db')")
	}
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

func countOf(args []string, option string) int {
	n := 0
	for _, a := range args {
		if a == option || strings.HasPrefix(a, option+"=") {
			n++
		}
	}
	return n
}

// nextArg takes one option, or one cluster of short ones, from args.
func nextArg(args []string) (parsed, rest []string, err error) {
	arg, rest := args[0], args[1:]
	if name, ok := strings.CutPrefix(arg, "--"); ok {
		name, value, inline := strings.Cut(name, "=")
		i := slices.IndexFunc(arguments, func(a argument) bool { return a.long == name })
		if i < 0 || name == "" {
			return nil, rest, unknownArg(arg)
		}
		return takeValue(arguments[i], value, inline, rest)
	}
	if len(arg) < 2 || arg[0] != '-' {
		return nil, rest, unknownArg(arg)
	}
	for cluster := arg[1:]; cluster != ""; cluster = cluster[1:] {
		i := slices.IndexFunc(arguments, func(a argument) bool { return a.short == cluster[:1] })
		if i < 0 {
			return nil, rest, unknownArg("-" + cluster[:1])
		}
		if arguments[i].value {
			p, r, err := takeValue(arguments[i], strings.TrimPrefix(cluster[1:], "="), len(cluster) > 1, rest)
			return append(parsed, p...), r, err
		}
		parsed = append(parsed, "--"+arguments[i].long)
	}
	return parsed, rest, nil
}

func unknownArg(arg string) error {
	return orchestrator.Errorf(orchestrator.CodeInvalid, "%.80q cannot be passed to ansible-playbook", arg).
		WithHint("what can be: --check --diff --limit --tags --skip-tags --start-at-task -e -f -v")
}

func takeValue(a argument, value string, inline bool, rest []string) (parsed, left []string, err error) {
	option := "--" + a.long
	switch {
	case !a.value && inline:
		return nil, rest, orchestrator.Errorf(orchestrator.CodeInvalid, "%s takes no value", option)
	case !a.value:
		return []string{option}, rest, nil
	case !inline && len(rest) == 0:
		return nil, rest, orchestrator.Errorf(orchestrator.CodeInvalid, "%s needs a value", option)
	case !inline:
		value, rest = rest[0], rest[1:]
	}
	if err := checkValue(a, value); err != nil {
		return nil, rest, err
	}
	return []string{option + "=" + value}, rest, nil
}

func checkValue(a argument, value string) error {
	switch {
	case value == "" || strings.HasPrefix(value, "-"):
		return orchestrator.Errorf(orchestrator.CodeInvalid, "--%s %.80q is empty or begins with a dash", a.long, value)
	case strings.ContainsRune(value, 0):
		return orchestrator.Errorf(orchestrator.CodeInvalid, "--%s %.80q holds a NUL byte", a.long, value)
	case a.long == "forks":
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > maxForks {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "--forks %.80q is not a number from 1 to %d", value, maxForks)
		}
	case a.long == "extra-vars":
		return checkFile(a, value)
	case a.long == "limit":
		for pattern := range strings.FieldsFuncSeq(value, betweenPatterns) {
			if err := checkFile(a, pattern); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFile refuses an @file that may lie outside the snapshot.
func checkFile(a argument, value string) error {
	file, ok := strings.CutPrefix(strings.TrimSpace(value), "@")
	// Ansible expands ~ and variables in it.
	if ok && (!filepath.IsLocal(file) || file[0] == '~' || strings.Contains(file, "$")) {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "--%s @%.80s is not a file beside the playbook", a.long, file).
			WithHint("put it into the playbook's directory and name it by its relative path")
	}
	return nil
}

func betweenPatterns(r rune) bool { return r == ',' || r == ':' || r == ' ' }

// Files returns the files that arguments name, as [ParseArgs] returned them:
// each lies below the playbook's directory.
func Files(args []string) []string {
	var files []string
	add := func(value string) {
		if file, ok := strings.CutPrefix(strings.TrimSpace(value), "@"); ok {
			files = append(files, filepath.ToSlash(filepath.Clean(file)))
		}
	}
	for _, a := range args {
		if value, ok := strings.CutPrefix(a, "--extra-vars="); ok {
			add(value)
		}
		if value, ok := strings.CutPrefix(a, "--limit="); ok {
			for pattern := range strings.FieldsFuncSeq(value, betweenPatterns) {
				add(pattern)
			}
		}
	}
	return files
}
