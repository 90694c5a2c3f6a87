package orchestrator

import "strings"

// ShellQuote quotes a word for sh(1) where it needs it, so that a command that
// is shown to a person can be typed as it stands.
func ShellQuote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:,=@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ShellCommand joins words to a command for sh(1), each quoted where it needs it.
func ShellCommand(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = ShellQuote(w)
	}
	return strings.Join(quoted, " ")
}

// passesOn returns where a command of [ShellCommand] goes on with --, or its length.
// What stands in quotes is a word of its own.
func passesOn(command string) int {
	quoted := false
	for i := 0; i < len(command); i++ {
		switch {
		case command[i] == '\'':
			quoted = !quoted
		case quoted:
		case command[i] == '\\':
			i++
		case strings.HasPrefix(command[i:], " -- "):
			return i
		}
	}
	return len(command)
}

// runNow is how a schedule's fire is asked for, before its name.
const runNow = "exocomp schedule run-now "

// WithIdentity is how a command is given once more, to log in with a key file. A
// schedule's fire takes none: its keys are those of the schedule, and those that
// the rule of its playbook grants.
func WithIdentity(command string) string {
	name, fire := strings.CutPrefix(command, runNow)
	if !fire {
		i := passesOn(command)
		return command[:i] + " --ssh-identity FILE" + command[i:]
	}
	return "exocomp schedule add " + name + " … --ssh-identity FILE -- PLAYBOOK (or ssh_identity in the playbook's rule in exocomp.hcl); then: " + command
}
