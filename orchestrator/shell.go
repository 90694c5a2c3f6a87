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

// WithWords adds words to a command for sh(1), before what it passes on behind --.
func WithWords(command string, words ...string) string {
	own, passed, found := strings.Cut(command, " -- ")
	own += " " + strings.Join(words, " ")
	if !found {
		return own
	}
	return own + " -- " + passed
}
